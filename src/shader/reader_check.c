/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reader_check: what Metal refuses and C++ would take, or explain in words that mean nothing to who writes Metal. Only what names and
 * attributes tell: types are clang's. Headers of the standard library are not looked at.
 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "shader/reader_internal.h"

/* Keywords of C++ that Metal has not. */
static const struct {
  const char *word, *why;
} refused[] = {
  {"double", "'double' is not supported in Metal: use float"},
  {"goto", "'goto' is not supported in Metal"},
  {"try", "exceptions are not supported in Metal"},
  {"catch", "exceptions are not supported in Metal"},
  {"throw", "exceptions are not supported in Metal"},
  {"typeid", "'typeid' is not supported in Metal: types are not known at run time"},
  {"dynamic_cast", "'dynamic_cast' is not supported in Metal: types are not known at run time"},
  {"virtual", "virtual functions and base classes are not supported in Metal"},
  {"thread_local", "'thread_local' is not supported in Metal: use the address space 'thread' or 'threadgroup'"},
  {"new", "'new' is not supported in Metal: kernels cannot allocate memory"},
  {"delete", "'delete' is not supported in Metal: kernels cannot allocate memory"},
};

/* Textures that <metal_texture> has not. */
static bool is_missing_texture(const reader *r, uint32_t i) {
  static const char *const words[] = {"texture2d_ms", "texture2d_ms_array", "texturecube", "texturecube_array", "depth2d", "depth2d_array",
                                      "depth2d_ms", "depth2d_ms_array", "depthcube", "depthcube_array"};
  if (!token_punct(r, i + 1, '<')) return false;
  for (size_t k = 0; k < sizeof words / sizeof *words; k++)
    if (token_is(r, i, words[k])) return true;
  return false;
}

static void check_word(reader *r, uint32_t i) {
  char first = token_first(r, i);
  if ((first == 't' || first == 'd') && is_missing_texture(r, i)) {
    mps_reader_fail(r, i, "cube, depth and multisampled textures are not supported yet");
    return;
  }
  for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
    if (!token_is(r, i, refused[k].word)) continue;
    bool deleted = token_is(r, i, "delete") && i > 0 && token_punct(r, i - 1, '='); /* a function = delete; */
    if (!deleted) mps_reader_fail(r, i, "%s", refused[k].why);
    return;
  }
}

void mps_reader_check_words(reader *r) {
  for (uint32_t i = 0; i < r->list.count && r->status == MPS_STATUS_OK; i++)
    if (r->list.tokens[i].kind == MPS_TOKEN_IDENTIFIER && !r->list.tokens[i].system) check_word(r, i);
}

/* Variables of a function that stay between calls, and that all threads would share. */
void mps_reader_check_statics(reader *r, const declaration *d) {
  if (!d->function || r->list.tokens[d->begin].system) return;
  for (uint32_t i = d->body + 1; i < d->end && r->status == MPS_STATUS_OK; i++) {
    char before = token_first(r, i - 1);
    if (!token_is(r, i, "static") || (before != ';' && before != '{' && before != '}')) continue;
    bool allowed = false;
    uint32_t k = i + 1;
    for (; k < d->end && !allowed; k++) {
      char c = token_first(r, k);
      if (c == ';' || c == '=' || c == '{' || c == '[') break;
      if (c == '(' || token_is(r, k, "const") || token_is(r, k, "constexpr") || token_is(r, k, "constant") || token_is(r, k, "threadgroup"))
        allowed = true; /* a parenthesis: a function of a local class */
    }
    if (!allowed) mps_reader_fail(r, i, "a static variable must be in the address space 'constant'");
  }
}

/* ---- kernels ---- */
static uint32_t name_length(const reader *r, uint32_t i) { return r->list.tokens[i].length; }
static const char *name_text(const reader *r, uint32_t i) { return r->list.text + r->list.tokens[i].start; }

/* Kernels return void; a type of another name that may be void stays clang's to judge. */
static void check_result(reader *r, const declaration *d) {
  static const char *const words[] = {"kernel", "static", "inline", "constexpr", "extern", "const"};
  uint32_t type = 0;
  for (uint32_t i = d->head; i < d->name; i++) {
    bool specifier = false;
    if (token_attribute(r, i)) {
      i = r->partner[i];
      continue;
    }
    if (token_is(r, i, "__attribute__")) {
      i = r->partner[i + 1];
      continue;
    }
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) specifier = specifier || token_is(r, i, words[k]);
    if (specifier) continue;
    type = i;
    break;
  }
  if (!type || token_is(r, type, "auto")) return;
  bool pointer = token_punct(r, type + 1, '*') || token_punct(r, type + 1, '&');
  if (token_is(r, type, "void") && !pointer) return;
  if (!pointer && mps_reader_find_alias(r, type)) return;
  mps_reader_fail(r, type, "kernel '%.*s' must return void", (int)name_length(r, d->name), name_text(r, d->name));
}

/* True if the type that a word names may have an address space of its own. */
static bool may_hide_space(const reader *r, uint32_t word) {
  if (mps_reader_find_alias(r, word)) return true;
  for (uint32_t i = 0; i + 1 < word; i++)
    if ((token_is(r, i, "typename") || token_is(r, i, "class")) && token_same(r, i + 1, word)) return true;
  return false;
}

static void check_space(reader *r, const kernel_parameter *p) {
  static const char *const spaces[] = {"device", "constant", "threadgroup", "threadgroup_imageblock", "object_data", "ray_data"};
  uint32_t sign = 0, word = 0;
  for (uint32_t i = p->first_token; i < p->end_token; i++) {
    for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++)
      if (token_is(r, i, spaces[k])) return;
    if (token_punct(r, i, '<')) {
      uint32_t close = mps_reader_close_angle(r, i, p->end_token);
      for (; i < close; i++) /* array<device float *, 8> is an argument buffer's, but no space of the parameter */
        if (token_is(r, i, "device") || token_is(r, i, "constant")) return;
      continue;
    }
    if (token_attribute(r, i)) break;
    if (token_punct(r, i, '*') || token_punct(r, i, '&')) sign = sign ? sign : i;
    else if (token_word(r, i) && !sign && !token_is(r, i, "const") && !token_is(r, i, "volatile") && !token_is(r, i, "thread")) word = i;
  }
  if (!sign || (word && may_hide_space(r, word))) return;
  mps_reader_fail(r, p->first_token, "a kernel's %s needs the address space 'device', 'constant' or 'threadgroup'",
                  token_punct(r, sign, '*') ? "pointer" : "reference");
}

static uint32_t most_index(const char *role) {
  if (strcmp(role, "texture") == 0) return MPS_ENCODER_MAX_TEXTURES - 1;
  if (strcmp(role, "sampler") == 0) return MPS_ENCODER_MAX_SAMPLERS - 1;
  return strcmp(role, "buffer") == 0 ? MPS_ENCODER_MAX_BUFFERS - 1 : UINT32_MAX;
}

static void check_indices(reader *r, const parameter_list *list) {
  for (size_t i = 0; i < list->count && r->status == MPS_STATUS_OK; i++) {
    const kernel_parameter *p = &list->items[i];
    if (!p->index || p->number == MPS_READER_NO_INDEX) continue;
    const char *what = strcmp(p->role, "threadgroup_memory") == 0 ? "threadgroup" : p->role;
    uint32_t most = most_index(p->role);
    if (p->number > most) mps_reader_fail(r, p->attribute, "%s index %u is out of range: there are 0 to %u", what, p->number, most);
    for (size_t k = 0; k < i; k++) {
      const kernel_parameter *other = &list->items[k];
      bool same = other->index && other->number == p->number && strcmp(other->role, p->role) == 0;
      if (same && !(p->condition && other->condition)) /* of two that are there under a condition, one may be there at a time */
        mps_reader_fail(r, p->attribute, "%s index %u is taken by argument %zu of this kernel", what, p->number, k + 1);
    }
  }
}

void mps_reader_check_kernel(reader *r, const declaration *d, const parameter_list *parameters) {
  if (r->status == MPS_STATUS_OK) check_result(r, d);
  check_indices(r, parameters);
  for (size_t i = 0; i < parameters->count && r->status == MPS_STATUS_OK; i++) check_space(r, &parameters->items[i]);
}

void mps_reader_check_name(reader *r, uint32_t token, const char *host_name, uint32_t scope) {
  for (size_t i = 0; i < r->exported.count; i++) {
    const exported_kernel *other = &r->exported.items[i];
    if (other->scope != scope || strcmp(other->name, host_name) != 0) continue;
    mps_reader_fail(r, token, "the kernel name '%s' is taken by line %u", host_name, r->list.lines[r->list.tokens[other->token].line].number);
    return;
  }
  mps_status status = MPS_ARRAY_RESERVE(&r->exported, 1);
  if (status != MPS_STATUS_OK) r->status = status;
  else MPS_ARRAY_PUSH(&r->exported, ((exported_kernel){host_name, token, scope}));
}
