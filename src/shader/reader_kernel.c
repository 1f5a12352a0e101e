/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reader_kernel: a kernel's attributes and parameters, and the text of its entry. What cannot be told without types is left to
 * host_launch.h: the text only says which role each parameter plays.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shader/reader_internal.h"

enum { FLAG_BARRIER = 1, FLAG_SIMDGROUP = 2 }; /* MPS_FUNCTION_USES_* of driver.h */

/* Metal's parameter attributes and the role templates they become. Those with an index take it from their argument. */
static const struct {
  const char *attribute, *role;
  bool indexed;
} roles[] = {
  {"buffer", "buffer", true},
  {"threadgroup", "threadgroup_memory", true},
  {"texture", "texture", true},
  {"sampler", "sampler", true},
  {"thread_position_in_grid", "grid_position", false},
  {"threads_per_grid", "grid_size", false},
  {"thread_position_in_threadgroup", "local_position", false},
  {"thread_index_in_threadgroup", "local_index", false},
  {"threadgroup_position_in_grid", "group_position", false},
  {"threadgroups_per_grid", "group_count", false},
  {"threads_per_threadgroup", "group_size", false},
  {"dispatch_threads_per_threadgroup", "full_group_size", false},
  {"thread_index_in_simdgroup", "lane", false},
  {"simdgroup_index_in_threadgroup", "simdgroup", false},
  {"simdgroups_per_threadgroup", "simdgroup_count", false},
  {"dispatch_simdgroups_per_threadgroup", "full_simdgroup_count", false},
  {"threads_per_simdgroup", "simdgroup_size", false},
  {"thread_execution_width", "simdgroup_size", false},
  {"thread_index_in_quadgroup", "quad_lane", false},
  {"quadgroup_index_in_threadgroup", "quadgroup", false},
  {"grid_origin", "grid_origin", false},
};

/* Attributes of C++ and clang stay. */
static bool is_foreign_attribute(const reader *r, uint32_t name) {
  static const char *const words[] = {"maybe_unused", "nodiscard", "noreturn", "fallthrough", "likely", "unlikely", "deprecated",
                                      "clang", "gnu", "no_unique_address"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (token_is(r, name, words[i])) return true;
  return false;
}

/* Calls `visit` for each attribute of the group [[...]] at `group`; arguments are tokens [begin, end). Returns false if any is foreign. */
typedef void (*attribute_visitor)(reader *r, void *context, uint32_t name, uint32_t begin, uint32_t end);
static bool visit_attributes(reader *r, uint32_t group, attribute_visitor visit, void *context) {
  bool own = true;
  for (uint32_t i = group + 2, end = r->partner[group + 1]; i < end; i++) {
    if (!token_word(r, i)) continue;
    uint32_t name = i, begin = 0, finish = 0;
    if (is_foreign_attribute(r, name)) own = false;
    while (token_is(r, i + 1, "::")) i += 2;
    if (token_punct(r, i + 1, '(')) {
      begin = i + 2;
      finish = r->partner[i + 1];
      i = finish;
    }
    if (own) visit(r, context, name, begin, finish);
  }
  return own;
}

/* ---- plain declarations ---- */
static void visit_nothing(reader *r, void *context, uint32_t name, uint32_t begin, uint32_t end) {
  (void)r, (void)context, (void)name, (void)begin, (void)end;
}

void mps_reader_plain_attributes(reader *r, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; i++) {
    if (!token_attribute(r, i)) continue;
    uint32_t group = i, close = r->partner[i];
    if (visit_attributes(r, group, visit_nothing, NULL)) {
      const char *initializer = mps_reader_constant_text(r, group);
      mps_reader_blank(r, group, close + 1);
      if (initializer) r->edits[group].text = initializer;
    }
    i = close;
  }
}

/* ---- kernels ---- */
typedef struct kernel_attributes {
  const char *host_name, *max_threads;
} kernel_attributes;

static void visit_kernel(reader *r, void *context, uint32_t name, uint32_t begin, uint32_t end) {
  kernel_attributes *a = context;
  if (token_is(r, name, "max_total_threads_per_threadgroup")) {
    a->max_threads = mps_reader_render(r, begin, end);
  } else if (token_is(r, name, "host_name")) {
    char joined[512] = "";
    size_t used = 0;
    for (uint32_t i = begin; i < end; i++) { /* adjacent strings are one */
      const mps_token *t = &r->list.tokens[i];
      const char *string = r->list.text + t->start;
      const bool plain = t->kind == MPS_TOKEN_STRING && t->length >= 2 && string[0] == '"' && string[t->length - 1] == '"';
      if (!plain || memchr(string, '\n', t->length) || used + t->length > sizeof joined) {
        mps_reader_fail(r, i, "host_name takes a plain string of at most 500 bytes");
        return;
      }
      memcpy(joined + used, string + 1, t->length - 2);
      used += t->length - 2;
      joined[used] = 0;
    }
    a->host_name = mps_reader_text(r, "%s", joined);
  }
}

static void visit_parameter(reader *r, void *context, uint32_t name, uint32_t begin, uint32_t end) {
  kernel_parameter *p = context;
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
    if (!token_is(r, name, roles[i].attribute)) continue;
    p->role = roles[i].role;
    if (roles[i].indexed) {
      p->index = mps_reader_render(r, begin, end);
      p->attribute = name;
      if (!mps_reader_number(r, begin, end, &p->number)) p->number = MPS_READER_NO_INDEX;
    }
    return;
  }
  if (token_is(r, name, "function_constant")) p->condition = mps_reader_render(r, begin, end);
  else
    mps_reader_fail(r, name, "'%.*s' is not an attribute of a kernel's parameter that OpenMPS knows", (int)r->list.tokens[name].length,
                    r->list.text + r->list.tokens[name].start);
}

static kernel_parameter read_parameter(reader *r, uint32_t begin, uint32_t end) {
  kernel_parameter p = {.first_token = begin, .end_token = end};
  for (uint32_t i = begin; i < end; i++) {
    char c = token_first(r, i);
    if (token_attribute(r, i)) {
      uint32_t close = r->partner[i];
      if (visit_attributes(r, i, visit_parameter, &p)) mps_reader_blank(r, i, close + 1);
      i = close;
    } else if (token_punct(r, i, '<')) {
      i = mps_reader_close_angle(r, i, end);
    } else if (c == '*' || c == '&' || c == '[') {
      p.pointer = true;
      if (c == '[') i = r->partner[i];
    } else if (token_is(r, i, "constant")) {
      p.constant = true;
    } else if (token_is(r, i, "threadgroup")) {
      p.threadgroup = true;
    } else if (token_is(r, i, "sampler")) {
      p.sampler = true;
    } else if (token_starts(r, i, "texture") && token_punct(r, i + 1, '<')) {
      p.texture = true;
    }
  }
  return p;
}

static void read_parameters(reader *r, uint32_t open, parameter_list *out) {
  uint32_t close = r->partner[open], begin = open + 1;
  if (begin == close || (begin + 1 == close && token_is(r, begin, "void"))) return;
  for (uint32_t i = begin; i <= close && r->status == MPS_STATUS_OK; i++) {
    char c = token_first(r, i);
    if (i < close && (c == '(' || c == '[' || c == '{')) i = r->partner[i];
    else if (i < close && token_punct(r, i, '<')) i = mps_reader_close_angle(r, i, close);
    else if (i == close || token_punct(r, i, ',')) {
      kernel_parameter p = read_parameter(r, begin, i);
      mps_status status = MPS_ARRAY_RESERVE(out, 1);
      if (status != MPS_STATUS_OK) r->status = status;
      else MPS_ARRAY_PUSH(out, p);
      begin = i + 1;
    }
  }
}

/* False if the kernel of this name is not wanted. */
static bool is_wanted(const reader *r, const char *host_name) {
  return !r->options->special || strcmp(r->options->special->function, host_name) == 0;
}

/* What has indices of its own. */
static const char *const indexed_roles[] = {"buffer", "threadgroup_memory", "texture", "sampler"};
enum { INDEXED_ROLES = sizeof indexed_roles / sizeof *indexed_roles };

/* The indexed role of a parameter without an attribute; INDEXED_ROLES: none. */
static unsigned default_role(const kernel_parameter *p) {
  if (p->texture) return 2;
  if (p->sampler) return 3;
  return p->pointer ? p->threadgroup : INDEXED_ROLES;
}

/* True if an explicit index of this role equals `index`. */
static bool index_taken(const parameter_list *list, const char *role, unsigned index) {
  for (size_t i = 0; i < list->count; i++) {
    const kernel_parameter *p = &list->items[i];
    if (p->index && strcmp(p->role, role) == 0 && strtoul(p->index, NULL, 0) == index) return true;
  }
  return false;
}

/* Gives every parameter a role and an index; the text names one role template a parameter. */
static const char *assign_roles(reader *r, uint32_t kernel, parameter_list *list) {
  const char *text = "";
  unsigned next[INDEXED_ROLES] = {0};
  for (size_t i = 0; i < list->count; i++) {
    const kernel_parameter *p = &list->items[i];
    const char *role = p->role, *index = p->index;
    if (!role) {
      unsigned which = default_role(p);
      if (which == INDEXED_ROLES) {
        mps_reader_fail(r, p->first_token, "parameter %zu of kernel '%.*s' has no attribute and is neither a pointer nor a reference", i + 1,
                        (int)r->list.tokens[kernel].length, r->list.text + r->list.tokens[kernel].start);
        return "";
      }
      role = indexed_roles[which];
      while (index_taken(list, role, next[which])) next[which]++;
      index = mps_reader_text(r, "%u", next[which]++);
    }
    if (p->constant && strcmp(role, "buffer") == 0) role = "constant_buffer";
    const char *role_text = index ? mps_reader_text(r, "::mps_host::%s<(%s)>", role, index) : mps_reader_text(r, "::mps_host::%s", role);
    if (p->condition) role_text = mps_reader_text(r, "::mps_host::argument_where<(%s), %s>", p->condition, role_text);
    text = mps_reader_text(r, "%s, %s", text, role_text);
  }
  return text;
}

/* Records the kernel and returns the text of its entry and row, to stand where `pointer` is in scope. `shared`: what tells the bytes of its
 * threadgroup variables; NULL: none. */
static const char *entry_text(reader *r, const char *host_name, const char *max_threads, uint32_t reach, const char *roles_text, const char *shared) {
  unsigned n = (unsigned)r->kernels.count;
  uint32_t flags = (reach & REACH_BARRIER ? FLAG_BARRIER : 0) | (reach & REACH_SIMDGROUP ? FLAG_SIMDGROUP : 0);
  mps_reader_kernel kernel = {.name = strdup(host_name), .flags = flags};
  if (!kernel.name || MPS_ARRAY_RESERVE(&r->kernels, 1) != MPS_STATUS_OK) {
    free(kernel.name);
    r->status = mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "out of memory while reading a shader");
    return "";
  }
  MPS_ARRAY_PUSH(&r->kernels, kernel);
  /* Thread functions of a kernel have numbers of their own, one for each shape of a group: see MPS_HOST_GROUPS. */
  const char *groups = flags ? mps_reader_text(r, " MPS_HOST_GROUPS(%u, %u, %u, %u)", n, 3 * n, 3 * n + 1, 3 * n + 2) : "";
  const char *run = mps_reader_text(r, flags ? "MPS_HOST_RUN_GROUPS(%u, *d)" : "mps_launch_%u::run(*d)", n);
  return mps_reader_text(r,
    " using mps_launch_%u = ::mps_host::launch<mps_pointer_%u, ::mps_host::parallel(%u, %s)%s>;"
    "%s static void mps_entry_%u(const ::mps_host_dispatch *d) { %s; }"
    " static const ::mps_host_function mps_row_%u = mps_launch_%u::row(\"%s\", mps_entry_%u, %s, %uu%s%s);"
    " static const ::mps_host_function *const mps_listed_%u __attribute__((used, section(\"mps_functions\"))) = &mps_row_%u;",
    n, n, n, reach ? "false" : "true", roles_text, groups, n, run, n, n, host_name, n, max_threads ? max_threads : "0", flags, shared ? ", " : "",
    shared ? shared : "", n, n);
}

/* Blanks attributes between begin and end (outside of parentheses) and reads them. */
static void read_kernel_attributes(reader *r, uint32_t begin, uint32_t end, kernel_attributes *out) {
  for (uint32_t i = begin; i < end; i++) {
    char c = token_first(r, i);
    if (token_attribute(r, i)) {
      uint32_t close = r->partner[i];
      if (visit_attributes(r, i, visit_kernel, out)) mps_reader_blank(r, i, close + 1);
      i = close;
    } else if (c == '(' || c == '{') {
      i = r->partner[i];
    }
  }
}

static void blank_kernel_word(reader *r, uint32_t begin, uint32_t end, const char *text) {
  for (uint32_t i = begin; i < end; i++) {
    if (token_punct(r, i, '[')) i = r->partner[i];
    else if (token_is(r, i, "kernel")) r->edits[i].text = "";
    else if (token_punct(r, i, '(')) break;
  }
  const char *before = r->edits[begin].before;
  r->edits[begin].before = before ? mps_reader_text(r, "%s%s", before, text) : text;
}

/* Finds the last name, with its template arguments, in front of `end`: [*begin, *finish). */
static bool find_function_name(reader *r, uint32_t begin, uint32_t end, uint32_t *out_begin, uint32_t *out_finish) {
  bool found = false;
  for (uint32_t i = begin; i < end; i++) {
    char c = token_first(r, i);
    if (c == '(' || c == '[') {
      i = r->partner[i];
    } else if (token_word(r, i) && !r->edits[i].text && !token_is(r, i, "void")) { /* "void ::space::kernel" */
      *out_begin = i;
      while (token_is(r, i + 1, "::") && token_word(r, i + 2)) i += 2;
      if (token_punct(r, i + 1, '<')) i = mps_reader_close_angle(r, i + 1, end);
      *out_finish = i + 1;
      found = true;
    }
  }
  return found;
}

/* The parameters that an instantiation writes count only if it repeats an attribute; else the template's do. */
static bool has_attributes(const parameter_list *list) {
  for (size_t i = 0; i < list->count; i++)
    if (list->items[i].role) return true;
  return false;
}

/* The call of mps_<what>_<n>, which stands behind the template, with the arguments of the name [begin, finish), `simple` its last part. */
static const char *of_template(reader *r, const char *what, const kernel_template *from, uint32_t begin, uint32_t simple, uint32_t finish) {
  return mps_reader_text(r, "%smps_%s_%u%s()", mps_reader_render(r, begin, simple), what, from->declaration, mps_reader_render(r, simple + 1, finish));
}

/* template [[host_name("x")]] kernel void f<float>(...); becomes a pointer to f<float>, an entry and a row. */
static void instantiate(reader *r, const declaration *d, const kernel_attributes *attributes) {
  uint32_t last = d->end - 1, name_end = last, name, finish, parameters = 0;
  if (token_punct(r, last - 1, ')')) { /* of the parameters, unless it is decltype's */
    uint32_t open = r->partner[last - 1];
    if (open > d->head && !token_is(r, open - 1, "decltype")) parameters = name_end = open;
  }
  if (!find_function_name(r, d->head, name_end, &name, &finish)) {
    mps_reader_fail(r, d->begin, "an instantiation of a kernel needs the kernel's name");
    return;
  }
  bool global = token_is(r, name - 1, "::"); /* "void ::(*pointer)" would be something else */
  if (global) mps_reader_blank(r, name - 1, name);
  uint32_t simple = name; /* the last part of a qualified name */
  for (uint32_t i = name; i + 2 < finish && token_is(r, i + 1, "::"); i += 2) simple = i + 2;
  const kernel_template *from = mps_reader_find_template(r, simple, finish);
  parameter_list written = {0};
  if (parameters) read_parameters(r, parameters, &written);
  if (!from && !parameters) mps_reader_fail(r, name, "the template of this kernel is not defined before its instantiation");
  bool exported = r->options->mode == MPS_READER_HOST && attributes->host_name;
  if (r->status == MPS_STATUS_OK && exported) mps_reader_check_name(r, name, attributes->host_name, 0);
  if (r->status == MPS_STATUS_OK && exported && !is_wanted(r, attributes->host_name)) {
    mps_reader_blank(r, d->begin, d->end);
  } else if (r->status == MPS_STATUS_OK && exported) {
    if (r->options->special) mps_reader_require_constants(r, d->begin, d->end);
    if (r->options->special && from)
      mps_reader_require_constants(r, r->declarations.items[from->declaration].begin, r->declarations.items[from->declaration].end);
    uint32_t reach = mps_reader_reach(r, d->begin, d->end);
    if (from) {
      const declaration *t = &r->declarations.items[from->declaration];
      reach |= mps_reader_reach(r, t->begin, t->end);
    }
    parameter_list chosen = from && !has_attributes(&written) ? from->parameters : written;
    for (size_t i = 0; i < chosen.count; i++)
      if (chosen.items[i].threadgroup) reach |= REACH_THREADGROUP;
    const char *max_threads = attributes->max_threads;
    if (!max_threads && from && from->max_threads) /* it may speak of the template's parameters */
      max_threads = token_punct(r, simple + 1, '<') ? of_template(r, "threads", from, name, simple, finish) : from->max_threads;
    const char *full_name = mps_reader_text(r, "%s%s", global ? "::" : "", mps_reader_render(r, name, finish));
    unsigned n = (unsigned)r->kernels.count;
    bool told = from && from->shared && token_punct(r, simple + 1, '<');
    const char *shared = told ? of_template(r, "shared", from, name, simple, finish) : NULL;
    const char *entry = entry_text(r, attributes->host_name, max_threads, reach, assign_roles(r, simple, &chosen), shared);
    r->edits[d->begin].text = "static constexpr";
    mps_reader_blank(r, name, finish);
    r->edits[name].text = mps_reader_text(r, "(*mps_pointer_%u)", n);
    r->edits[last].text = mps_reader_text(r, " = &%s;", full_name);
    mps_reader_append(r, last, entry);
  }
  MPS_ARRAY_FINI(&written);
}

static void remember_template(reader *r, uint32_t declaration_index, const kernel_attributes *attributes, parameter_list *parameters) {
  mps_status status = MPS_ARRAY_RESERVE(&r->templates, 1);
  if (status != MPS_STATUS_OK) {
    r->status = status;
    return;
  }
  kernel_template t = {.name_token = r->declarations.items[declaration_index].name, .declaration = declaration_index,
                       .max_threads = attributes->max_threads};
  memcpy(&t.parameters, parameters, sizeof t.parameters);
  memset(parameters, 0, sizeof *parameters);
  const declaration *d = &r->declarations.items[declaration_index];
  const char *shared = r->options->mode == MPS_READER_HOST ? mps_reader_shared(r, d, declaration_index) : NULL;
  t.shared = shared != NULL;
  if (shared) mps_reader_append(r, d->end - 1, shared);
  MPS_ARRAY_PUSH(&r->templates, t);
  if (!attributes->max_threads || r->options->mode != MPS_READER_HOST) return;
  mps_reader_append(r, d->end - 1, mps_reader_text(r, " %s static constexpr unsigned mps_threads_%u() { return %s; }",
                                                   mps_reader_render(r, d->begin, d->head), declaration_index, attributes->max_threads));
}

/* Behind a kernel that is no template: a pointer to it, its entry and its row. */
static void export_plain(reader *r, const declaration *d, const kernel_attributes *attributes, parameter_list *parameters) {
  if (d->specialization && !attributes->host_name) return;
  const mps_token *name = &r->list.tokens[d->name];
  const char *host_name = attributes->host_name ? attributes->host_name : mps_reader_text(r, "%.*s", (int)name->length, r->list.text + name->start);
  mps_reader_check_name(r, d->name, host_name, attributes->host_name ? 0 : d->scope);
  if (!is_wanted(r, host_name)) return;
  if (r->options->special) mps_reader_require_constants(r, d->begin, d->end);
  uint32_t reach = mps_reader_reach(r, d->begin, d->end);
  for (size_t i = 0; i < parameters->count; i++)
    if (parameters->items[i].threadgroup) reach |= REACH_THREADGROUP;
  uint32_t begin = d->name, finish = d->name + 1;
  if (d->specialization) find_function_name(r, d->head, d->parameters, &begin, &finish);
  unsigned n = (unsigned)r->kernels.count;
  const char *full_name = mps_reader_render(r, begin, finish);
  const char *types = mps_reader_render(r, d->parameters, r->partner[d->parameters] + 1); /* Metal may have a function of that name */
  mps_reader_append(r, d->end - 1, mps_reader_text(r, " static constexpr void (*mps_pointer_%u)%s = &%s;", n, types, full_name));
  uint32_t number = (uint32_t)(d - r->declarations.items);
  const char *shared = mps_reader_shared(r, d, number), *call = shared ? mps_reader_text(r, "mps_shared_%u()", number) : NULL;
  if (shared) mps_reader_append(r, d->end - 1, shared);
  mps_reader_append(r, d->end - 1, entry_text(r, host_name, attributes->max_threads, reach, assign_roles(r, d->name, parameters), call));
}

void mps_reader_kernel_definition(reader *r, uint32_t declaration_index) {
  declaration *d = &r->declarations.items[declaration_index];
  kernel_attributes attributes = {0};
  uint32_t head_end = d->body ? d->body : d->end;
  read_kernel_attributes(r, d->head, head_end, &attributes);
  if (r->status != MPS_STATUS_OK) return;
  if (d->instantiation) {
    blank_kernel_word(r, d->head, head_end, "");
    instantiate(r, d, &attributes);
    return;
  }
  if (!d->parameters || !d->name) {
    mps_reader_fail(r, d->begin, "a kernel must be a function");
    return;
  }
  if (d->specialization) { /* the name stands in front of its template arguments */
    uint32_t finish;
    if (find_function_name(r, d->head, d->parameters, &d->name, &finish)) d->specialization = true;
  }
  bool internal = r->options->mode == MPS_READER_HOST && !d->specialization;
  blank_kernel_word(r, d->head, head_end, internal ? "static " : "");
  parameter_list parameters = {0};
  read_parameters(r, d->parameters, &parameters);
  mps_reader_check_kernel(r, d, &parameters);
  if (r->status == MPS_STATUS_OK && d->function) {
    mps_reader_plain_attributes(r, d->body, d->end);
    if (d->is_template) remember_template(r, declaration_index, &attributes, &parameters);
    else if (r->options->mode == MPS_READER_HOST) export_plain(r, d, &attributes, &parameters);
  }
  MPS_ARRAY_FINI(&parameters);
}
