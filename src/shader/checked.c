/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checked: goes through a module line by line. An access gets the address that the driver answers; variables of the module become
 * addresses that only the driver understands (driver/host/checks.h).
 */
#include "shader/checked.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "driver/host/checks.h"
#include "shader/checked_internal.h"

/* A variable that kernels see. */
typedef struct object {
  ir_span name; /* with its @ */
  ir_span type;
  uint32_t alignment;
  bool threadgroup;
} object;

typedef struct site {
  checked_place place;
  uint32_t kind, alignment;
} site;

typedef struct module {
  ir_span text;
  checked_folders folders;
  checked_metadata metadata;
  MPS_ARRAY(object) objects;
  MPS_ARRAY(site) sites;
  ir_text out;
  checked_stack *stack; /* of the function */
  uint32_t values;      /* that were added to the function */
} module;

static bool has(ir_span text, const char *what) { return ir_find(text, what) < text.length; }

/* Behind the first `key`; empty: there is none. */
static ir_span behind_key(ir_span text, const char *key) { return ir_behind(text, ir_find(text, key) + strlen(key)); }

/* 0: there is no `key`. */
static uint32_t number_behind(ir_span text, const char *key) {
  uint64_t number;
  ir_number(behind_key(text, key), &number);
  return (uint32_t)number;
}

/* The number behind the last `key`: what stands before may be a text that says anything. False: there is none. */
static bool last_number_behind(ir_span text, const char *key, uint32_t *out_number) {
  bool found = false;
  for (size_t at; (at = ir_find(text, key)) < text.length; found = true) {
    uint64_t number;
    text = ir_behind(text, at + strlen(key));
    ir_number(text, &number);
    *out_number = (uint32_t)number;
  }
  return found;
}

/* Hands the text on, or frees it. */
static mps_status give(ir_text *text, mps_status status, char **out_text, size_t *out_length) {
  if (status == MPS_STATUS_OK && text->failed) status = mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the text of a checked shader");
  if (status != MPS_STATUS_OK) ir_text_fini(text);
  *out_text = text->at;
  *out_length = text->length;
  return status;
}

/* ---- inlining ---- */
#define MAX_ATTRIBUTES 1024u

/* Notes the attributes, "#4", of the function that is defined in this line. */
static void note_attributes(ir_span line, bool *wanted) {
  uint32_t number = number_behind(line, " #");
  if (has(line, " #") && number < MAX_ATTRIBUTES) wanted[number] = true;
}

static bool is_wanted(ir_span line, const bool *wanted) {
  if (!ir_starts(line, "attributes #") || !has(line, "{") || has(line, "noinline") || has(line, "alwaysinline")) return false;
  uint32_t number = number_behind(line, "#");
  return number < MAX_ATTRIBUTES && wanted[number];
}

mps_status mps_checked_inline(const char *text, size_t length, char **out_text, size_t *out_length) {
  bool wanted[MAX_ATTRIBUTES] = {false};
  ir_text out = {0};
  ir_span line;
  for (ir_span rest = {text, length}; ir_next_line(&rest, &line);)
    if (ir_starts(line, "define ")) note_attributes(line, wanted);
  for (ir_span rest = {text, length}; ir_next_line(&rest, &line);) {
    if (is_wanted(line, wanted)) {
      ir_span words = behind_key(line, "{");
      ir_put_span(&out, ir_between(line.at, words.at));
      ir_put(&out, " alwaysinline");
      line = words;
    }
    ir_put_span(&out, line);
  }
  return give(&out, MPS_STATUS_OK, out_text, out_length);
}

/* ---- variables ---- */
/* Those of the library's own make are left as they are. */
static bool is_users(ir_span name) {
  static const char *const own[] = {"openmps_", "llvm.", "mps_", "_ZL8mps_", "_ZL9mps_", "_ZL10mps_", "_ZL11mps_", "_ZL12mps_", "_ZL13mps_",
                                    "_ZL14mps_", "_ZL15mps_", "_ZL16mps_", "__start_mps_"};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (ir_starts(ir_behind(name, 1), own[i])) return false;
  return !has(name, "openmps_detail");
}

/* Of a variable's or a function's name, with its @. */
static size_t global_length(ir_span text) {
  ir_span name;
  return 1 + ir_name_length(ir_behind(text, 1), &name);
}

static mps_status read_object(module *m, ir_span line) {
  ir_span name = {line.at, global_length(line)}, rest = ir_behind(line, name.length);
  if (!ir_starts(rest, " = ") || !is_users(name) || has(line, " external ")) return MPS_STATUS_OK;
  bool local = has(rest, " thread_local");
  ir_span value = behind_key(rest, local ? " global " : " constant ");
  object o = {.name = name, .type = {value.at, ir_type_length(value)}, .alignment = 1, .threadgroup = local};
  if (o.type.length == 0) return MPS_STATUS_OK;
  last_number_behind(value, ", align ", &o.alignment);
  if (m->objects.count >= MPS_CHECKED_REGIONS - MPS_CHECKED_OBJECTS) return MPS_STATUS_OK; /* the rest goes by its own address */
  MPS_TRY(MPS_ARRAY_RESERVE(&m->objects, 1));
  MPS_ARRAY_PUSH(&m->objects, o);
  return MPS_STATUS_OK;
}

static uint64_t address_of_object(size_t index) {
  return MPS_CHECKED_MARK | (uint64_t)(MPS_CHECKED_OBJECTS + index) << MPS_CHECKED_REGION_SHIFT | MPS_CHECKED_MIDDLE;
}

/* Adds a piece of a function with addresses in place of variables. */
static void add_code(module *m, ir_span code) {
  size_t done = 0;
  for (size_t at = 0; at < code.length && code.at[at] != '!'; at++) { /* behind that comes metadata */
    if (code.at[at] != '@') continue;
    size_t length = global_length(ir_behind(code, at));
    for (size_t i = 0; i < m->objects.count; i++) {
      ir_span name = m->objects.items[i].name;
      if (name.length != length || memcmp(name.at, code.at + at, length) != 0) continue;
      ir_put_span(&m->out, (ir_span){code.at + done, at - done});
      ir_put(&m->out, "inttoptr (i64 %llu to ptr)", (unsigned long long)address_of_object(i));
      done = at + length;
      break;
    }
    at += length - 1;
  }
  ir_put_span(&m->out, ir_behind(code, done));
}

/* ---- sites ---- */
static mps_status add_site(module *m, checked_place place, uint32_t kind, uint32_t alignment, size_t *out_index) {
  MPS_TRY(MPS_ARRAY_RESERVE(&m->sites, 1));
  *out_index = m->sites.count;
  MPS_ARRAY_PUSH(&m->sites, ((site){place, kind, alignment}));
  return MPS_STATUS_OK;
}

static checked_place place_of(const module *m, ir_span line) {
  uint32_t number;
  if (!last_number_behind(line, "!dbg !", &number)) return (checked_place){0};
  return checked_find_place(&m->metadata, &m->folders, number);
}

/* ---- accesses ---- */
/* One pointer of an instruction. `count`: where the length in bytes stands, for whole objects; else the type says it. */
typedef struct access {
  ir_span pointer, type, count;
  uint32_t kind, alignment;
} access;

/* Bytes of a type, as a constant of type i64: what the compiler makes of it, where that depends on the module. */
static void put_bytes(ir_text *out, ir_span type) {
  uint64_t bits = ir_type_bits(type);
  if (bits) ir_put(out, "%llu", (unsigned long long)((bits + 7) / 8));
  else ir_put(out, "ptrtoint (ptr getelementptr (%.*s, ptr null, i32 1) to i64)", IR_SPAN(type));
}

/* The call in front of the access; its result has the number *out_value. */
static mps_status add_check(module *m, const access *a, checked_place place, uint32_t *out_value) {
  size_t index = 0;
  MPS_TRY(add_site(m, place, a->kind, a->alignment ? a->alignment : 1, &index));
  *out_value = m->values++;
  ir_put(&m->out, "  %%mps.v%u = call ptr @mps.access(ptr ", *out_value);
  add_code(m, a->pointer);
  ir_put(&m->out, ", i64 ");
  if (a->count.length) ir_put_span(&m->out, a->count);
  else put_bytes(&m->out, a->type);
  ir_put(&m->out, ", i32 %zu)\n", index);
  return MPS_STATUS_OK;
}

static void add_line_with(module *m, ir_span line, const access *accesses, const uint32_t *values, int count) {
  const char *done = line.at;
  for (int i = 0; i < count; i++) {
    if (values[i] == UINT32_MAX) continue;
    add_code(m, ir_between(done, accesses[i].pointer.at));
    ir_put(&m->out, "%%mps.v%u", values[i]);
    done = accesses[i].pointer.at + accesses[i].pointer.length;
  }
  add_code(m, ir_between(done, line.at + line.length));
  ir_put(&m->out, "\n");
}

static mps_status add_unchecked(module *m, ir_span line) {
  add_line_with(m, line, NULL, NULL, 0);
  return MPS_STATUS_OK;
}

static mps_status add_checked(module *m, ir_span line, const access *accesses, int count) {
  checked_place place = place_of(m, line);
  uint32_t values[2] = {UINT32_MAX, UINT32_MAX};
  for (int i = 0; i < count && !place.machinery; i++)
    if (!checked_stack_owns(m->stack, accesses[i].pointer)) MPS_TRY(add_check(m, &accesses[i], place, &values[i]));
  add_line_with(m, line, accesses, values, count);
  return MPS_STATUS_OK;
}

static ir_span skip_word(ir_span text, const char *word) { return ir_starts(text, word) ? ir_behind(text, strlen(word)) : text; }

/* The pointer operand that begins behind "ptr ": a name, or all up to the comma. */
static ir_span pointer_at(ir_span text) {
  ir_span name;
  bool named = ir_starts(text, "%") || ir_starts(text, "@");
  size_t length = named ? ir_name_length(ir_behind(text, 1), &name) : 0;
  return (ir_span){text.at, length ? 1 + length : ir_item_length(text)};
}

static bool read_load_or_store(ir_span what, access *out) {
  bool store = ir_starts(what, "store ");
  ir_span text = skip_word(what, store ? "store " : "load "), flags = skip_word(text, "atomic ");
  out->kind = (store ? MPS_SITE_WRITE : MPS_SITE_READ) | (flags.at != text.at ? MPS_SITE_ATOMIC : 0);
  text = skip_word(flags, "volatile ");
  out->type = (ir_span){text.at, ir_type_length(text)};
  text = ir_behind(text, ir_item_length(text));
  if (out->type.length == 0 || !ir_starts(text, ", ptr ")) return false;
  out->pointer = pointer_at(ir_behind(text, 6));
  out->alignment = number_behind(ir_behind(text, 6 + out->pointer.length), ", align ");
  return true;
}

static bool read_atomic(ir_span what, access *out) {
  ir_span pointer = behind_key(what, " ptr ");
  out->kind = MPS_SITE_READ | MPS_SITE_WRITE | MPS_SITE_ATOMIC;
  out->pointer = pointer_at(pointer);
  ir_span type = ir_behind(pointer, out->pointer.length);
  if (!ir_starts(type, ", ")) return false;
  type = ir_behind(type, 2);
  out->type = (ir_span){type.at, ir_type_length(type)};
  out->alignment = number_behind(type, ", align ");
  return out->type.length != 0;
}

/* The value of an argument like "ptr noundef align 16 %3". */
static ir_span argument_at(ir_span text, uint32_t *out_alignment) {
  ir_span argument = {text.at, ir_item_length(text)};
  *out_alignment = number_behind(argument, "align ");
  for (size_t i = 0; i < argument.length; i++) {
    ir_span rest = ir_behind(argument, i);
    if (rest.at[0] == '%' || rest.at[0] == '@' || ir_starts(rest, "inttoptr (") || ir_starts(rest, "getelementptr ") || ir_starts(rest, "null"))
      return rest;
    if (ir_starts(rest, "i64")) return ir_behind(rest, 4);
  }
  return (ir_span){text.at, 0};
}

/* memcpy, memmove and memset. Returns how many pointers there are. */
static int read_block(ir_span call, access *out) {
  bool set = ir_starts(call, "@llvm.memset");
  ir_span arguments, first, second, third;
  if (!ir_bracketed(ir_behind(call, ir_find(call, "(")), &arguments) || !ir_next_item(&arguments, &first) || !ir_next_item(&arguments, &second) ||
      !ir_next_item(&arguments, &third))
    return 0;
  uint32_t alignment;
  ir_span count = argument_at(third, &alignment);
  out[0] = (access){.kind = MPS_SITE_WRITE | (set ? 0 : MPS_SITE_COPY), .count = count};
  out[0].pointer = argument_at(first, &out[0].alignment);
  if (set) return 1;
  out[1] = (access){.kind = MPS_SITE_READ | MPS_SITE_COPY, .count = count};
  out[1].pointer = argument_at(second, &out[1].alignment);
  return 2;
}

/* ---- divisions ---- */
static bool is_division(ir_span what) {
  return ir_starts(what, "sdiv ") || ir_starts(what, "udiv ") || ir_starts(what, "srem ") || ir_starts(what, "urem ");
}

static void put_ones(ir_text *out, uint64_t lanes, ir_span element) {
  for (uint64_t i = 0; i < lanes; i++) ir_put(out, "%s%.*s 1%s", i ? ", " : "<", IR_SPAN(element), i + 1 == lanes ? ">" : "");
}

/* By one in place of zero. */
static mps_status add_division(module *m, ir_span line, ir_span what) {
  checked_place place = place_of(m, line);
  ir_span text = skip_word(ir_behind(what, 5), "exact "), type = {text.at, ir_type_length(text)}, element;
  ir_span comma = ir_behind(text, ir_item_length(text));
  if (place.line == 0 || type.length == 0 || !ir_starts(comma, ", ")) return add_unchecked(m, line);
  ir_span divisor = {comma.at + 2, ir_item_length(ir_behind(comma, 2))};
  size_t index = 0;
  MPS_TRY(add_site(m, place, MPS_SITE_DIVISION, 1, &index));
  ir_text *out = &m->out;
  uint32_t n = m->values++;
  uint64_t lanes;
  bool vector = ir_sequence(type, &lanes, &element);
  ir_put(out, "  %%mps.z%u = icmp eq %.*s %.*s, zeroinitializer\n", n, IR_SPAN(type), IR_SPAN(divisor));
  if (vector) {
    unsigned long long bits = lanes;
    ir_put(out, "  %%mps.b%u = bitcast <%llu x i1> %%mps.z%u to i%llu\n", n, bits, n, bits);
    ir_put(out, "  %%mps.a%u = zext i%llu %%mps.b%u to i32\n", n, bits, n);
    ir_put(out, "  %%mps.d%u = select <%llu x i1> %%mps.z%u, %.*s ", n, bits, n, IR_SPAN(type));
    put_ones(out, lanes, element);
  } else {
    ir_put(out, "  %%mps.a%u = zext i1 %%mps.z%u to i32\n", n, n);
    ir_put(out, "  %%mps.d%u = select i1 %%mps.z%u, %.*s 1", n, n, IR_SPAN(type));
  }
  ir_put(out, ", %.*s %.*s\n  call void @mps.division(i32 %%mps.a%u, i32 %zu)\n", IR_SPAN(type), IR_SPAN(divisor), n, index);
  ir_put_span(out, ir_between(line.at, divisor.at));
  ir_put(out, "%%mps.d%u", n);
  ir_put_span(out, ir_between(divisor.at + divisor.length, line.at + line.length));
  ir_put(out, "\n");
  return MPS_STATUS_OK;
}

/* ---- meetings ---- */
static mps_status add_meeting(module *m, ir_span line, uint32_t kind) {
  size_t index = 0;
  /* The call itself stands in <metal_compute>; the user's line is further out. */
  MPS_TRY(add_site(m, place_of(m, line), kind, 1, &index));
  uint32_t n = m->values++;
  ir_put(&m->out, "  %%mps.t%u = call i32 @mps.before_meeting(i32 %zu)\n", n, index);
  add_line_with(m, line, NULL, NULL, 0);
  ir_put(&m->out, "  call void @mps.after_meeting(i32 %%mps.t%u)\n", n);
  return MPS_STATUS_OK;
}

/* ---- lines ---- */
static mps_status add_call(module *m, ir_span line, ir_span what) {
  ir_span name = ir_behind(what, ir_find(what, "@")), arguments;
  access accesses[2];
  if (ir_starts(name, "@llvm.threadlocal.address") && ir_bracketed(ir_behind(name, ir_find(name, "(")), &arguments)) { /* the address is no longer one */
    uint32_t alignment;
    ir_put_span(&m->out, ir_between(line.at, what.at));
    ir_put(&m->out, "getelementptr i8, ptr ");
    add_code(m, argument_at(arguments, &alignment));
    ir_put(&m->out, ", i64 0\n");
    return MPS_STATUS_OK;
  }
  if (ir_starts(name, "@llvm.memcpy") || ir_starts(name, "@llvm.memmove") || ir_starts(name, "@llvm.memset"))
    return add_checked(m, line, accesses, read_block(name, accesses));
  if (ir_starts(name, "@_ZN5metal14openmps_detail4waitEv(")) return add_meeting(m, line, MPS_SITE_BARRIER);
  if (ir_starts(name, "@_ZN5metal14openmps_detail4meetEPKvjPNS0_7meetingE(")) return add_meeting(m, line, MPS_SITE_MEETING);
  return add_unchecked(m, line);
}

static mps_status add_line(module *m, ir_span line) {
  ir_span result, what = ir_instruction(line, &result), call = skip_word(skip_word(what, "tail "), "notail ");
  access a = {0};
  checked_stack_line(m->stack, line);
  if ((ir_starts(what, "load ") || ir_starts(what, "store ")) && read_load_or_store(what, &a)) return add_checked(m, line, &a, 1);
  if ((ir_starts(what, "atomicrmw ") || ir_starts(what, "cmpxchg ")) && read_atomic(what, &a)) return add_checked(m, line, &a, 1);
  if (is_division(what)) return add_division(m, line, what);
  return ir_starts(call, "call ") ? add_call(m, line, what) : add_unchecked(m, line);
}

/* The function that begins with the line `head`: takes the rest of it off `rest`. */
static mps_status add_function(module *m, ir_span head, ir_span *rest) {
  ir_span body = {rest->at, 0}, line;
  while (ir_next_line(rest, &line) && line.at[0] != '}') body.length += line.length;
  m->values = 0;
  m->stack = checked_stack_create(body);
  if (!m->stack) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory to check a shader");
  mps_status status = MPS_STATUS_OK;
  ir_put_span(&m->out, head);
  while (status == MPS_STATUS_OK && ir_next_line(&body, &line)) status = add_line(m, ir_bare_line(line));
  ir_put(&m->out, "}\n");
  checked_stack_free(m->stack);
  m->stack = NULL;
  return status;
}

/* ---- the table ---- */
/* What a mangled name ends with: "tile" of "_ZZ1fPfE4tile". */
static ir_span short_name(ir_span name) {
  const char *end = name.at + name.length;
  if (name.length > 1 && end[-1] == 'E') end--;
  for (const char *p = end - 1; p > name.at; p--) {
    if (*p < '0' || *p > '9') continue;
    while (p > name.at && p[-1] >= '0' && p[-1] <= '9') p--;
    uint64_t length;
    ir_span behind = ir_behind(ir_between(p, end), ir_number(ir_between(p, end), &length));
    if (length > 0 && length <= behind.length && (length == behind.length || behind.at[length] == '_')) return (ir_span){behind.at, (size_t)length};
  }
  return ir_behind(name, 1);
}

static void put_text(ir_text *out, const char *prefix, size_t number, ir_span text) {
  ir_put(out, "@mps.%s.%zu = private unnamed_addr constant [%zu x i8] c\"%.*s\\00\"\n", prefix, number, text.length + 1, IR_SPAN(text));
}

static void put_object_rows(module *m) {
  ir_text *out = &m->out;
  for (size_t i = 0; i < m->objects.count; i++) put_text(out, "name", i, short_name(m->objects.items[i].name));
  ir_put(out, "@mps.objects = internal constant [%zu x { ptr, ptr, i64, i64 }] [", m->objects.count);
  for (size_t i = 0; i < m->objects.count; i++) {
    const object *o = &m->objects.items[i];
    ir_span address = o->threadgroup ? (ir_span){"null", 4} : o->name;
    ir_put(out, "%s{ ptr, ptr, i64, i64 } { ptr %.*s, ptr @mps.name.%zu, i64 ", i ? ", " : "", IR_SPAN(address), i);
    put_bytes(out, o->type);
    ir_put(out, ", i64 %u }", o->alignment);
  }
  ir_put(out, "]\n");
}

static mps_status put_site_rows(module *m) {
  MPS_ARRAY(const char *) files = {0};
  ir_text rows = {0};
  mps_status status = MPS_STATUS_OK;
  for (size_t i = 0; i < m->sites.count && status == MPS_STATUS_OK; i++) {
    const site *s = &m->sites.items[i];
    size_t file = 0;
    while (file < files.count && files.items[file] != s->place.file.at) file++;
    if (file == files.count) {
      status = MPS_ARRAY_RESERVE(&files, 1);
      if (status != MPS_STATUS_OK) break;
      MPS_ARRAY_PUSH(&files, s->place.file.at);
      put_text(&m->out, "file", file, s->place.file);
    }
    ir_put(&rows, "%s{ ptr, i32, i32, i32, i32 } { ptr @mps.file.%zu, i32 %u, i32 %u, i32 %u, i32 0 }", i ? ", " : "", file, s->place.line, s->kind,
           s->alignment);
  }
  ir_put(&m->out, "@mps.sites = internal constant [%zu x { ptr, i32, i32, i32, i32 }] [", m->sites.count);
  ir_put_span(&m->out, (ir_span){rows.at, rows.length});
  ir_put(&m->out, "]\n");
  m->out.failed |= rows.failed;
  ir_text_fini(&rows);
  MPS_ARRAY_FINI(&files);
  return status;
}

static mps_status put_table(module *m) {
  put_object_rows(m);
  MPS_TRY(put_site_rows(m));
  ir_put(&m->out,
    "@mps.checks = internal global ptr null\n"
    "@mps_host_checked = protected constant { i32, i32, i32, i32, ptr, ptr, ptr } { i32 %d, i32 %zu, i32 %zu, i32 0, ptr @mps.sites, ptr "
    "@mps.objects, ptr @mps.checks }\n"
    "define internal ptr @mps.access(ptr %%p, i64 %%bytes, i32 %%site) {\n"
    "  %%t = load ptr, ptr @mps.checks\n  %%f = load ptr, ptr %%t\n  %%r = call ptr %%f(ptr %%p, i64 %%bytes, i32 %%site)\n  ret ptr %%r\n}\n"
    "define internal void @mps.division(i32 %%zero, i32 %%site) {\n  %%bad = icmp ne i32 %%zero, 0\n  br i1 %%bad, label %%tell, label %%done\ntell:\n"
    "  %%t = load ptr, ptr @mps.checks\n  %%a = getelementptr ptr, ptr %%t, i64 1\n  %%f = load ptr, ptr %%a\n"
    "  call void %%f(i32 %%zero, i32 %%site)\n  br label %%done\ndone:\n  ret void\n}\n"
    "define internal i32 @mps.before_meeting(i32 %%site) {\n"
    "  %%t = load ptr, ptr @mps.checks\n  %%a = getelementptr ptr, ptr %%t, i64 2\n  %%f = load ptr, ptr %%a\n"
    "  %%r = call i32 %%f(i32 %%site)\n  ret i32 %%r\n}\n"
    "define internal void @mps.after_meeting(i32 %%thread) {\n"
    "  %%t = load ptr, ptr @mps.checks\n  %%a = getelementptr ptr, ptr %%t, i64 3\n  %%f = load ptr, ptr %%a\n"
    "  call void %%f(i32 %%thread)\n  ret void\n}\n",
    MPS_HOST_CHECKED_VERSION, m->sites.count, m->objects.count);
  return MPS_STATUS_OK;
}

static mps_status instrument(module *m) {
  MPS_TRY(checked_metadata_read(m->text, &m->metadata));
  ir_span line;
  for (ir_span rest = m->text; ir_next_line(&rest, &line);)
    if (line.at[0] == '@') MPS_TRY(read_object(m, ir_bare_line(line)));
  for (ir_span rest = m->text; ir_next_line(&rest, &line);) {
    if (ir_starts(line, "define ")) MPS_TRY(add_function(m, line, &rest));
    else ir_put_span(&m->out, line);
  }
  return put_table(m);
}

mps_status mps_checked_instrument(const char *text, size_t length, const char *include, const char *include_core, char **out_text,
                                  size_t *out_length) {
  module m = {.text = {text, length}, .folders = {include, include_core}};
  mps_status status = instrument(&m);
  MPS_ARRAY_FINI(&m.metadata);
  MPS_ARRAY_FINI(&m.objects);
  MPS_ARRAY_FINI(&m.sites);
  return give(&m.out, status, out_text, out_length);
}
