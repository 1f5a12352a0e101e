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
  checked_span name; /* with its @ */
  checked_span type;
  uint32_t alignment;
  bool threadgroup;
} object;

typedef struct site {
  checked_place place;
  uint32_t kind, alignment;
} site;

typedef struct module {
  const char *text;
  checked_folders folders;
  checked_metadata metadata;
  MPS_ARRAY(object) objects;
  MPS_ARRAY(site) sites;
  checked_text out;
  checked_stack *stack; /* of the function */
  uint32_t values;      /* that were added to the function */
} module;

static bool begins(const char *p, const char *what) { return strncmp(p, what, strlen(what)) == 0; }

static const char *end_of_line(const char *p) {
  const char *end = strchr(p, '\n');
  return end ? end : p + strlen(p);
}

static const char *find_before(const char *p, const char *end, const char *what) {
  return p && p < end ? memmem(p, (size_t)(end - p), what, strlen(what)) : NULL;
}

/* Behind the name that begins with @. */
static const char *skip_name(const char *p) {
  p++;
  if (*p == '"') return strchr(p + 1, '"') ? strchr(p + 1, '"') + 1 : end_of_line(p);
  while ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '_' || *p == '.' || *p == '$' || *p == '-') p++;
  return p;
}

static uint32_t number_behind(const char *p, const char *end, const char *key) {
  const char *found = find_before(p, end, key);
  return found ? (uint32_t)strtoul(found + strlen(key), NULL, 10) : 0;
}

/* ---- inlining ---- */
/* Notes the attributes, "#4", of the function that is defined in this line. */
static void note_attributes(const char *line, const char *end, bool *wanted, size_t count) {
  for (const char *p = line; p < end; p++) {
    if (*p != '#' || p[-1] != ' ') continue;
    size_t number = strtoul(p + 1, NULL, 10);
    if (number < count) wanted[number] = true;
    return;
  }
}

mps_status mps_checked_inline(const char *text, size_t length, char **out_text, size_t *out_length) {
  bool wanted[1024] = {false};
  checked_text out = {0};
  mps_status status = MPS_ARRAY_RESERVE(&out, length + (length >> 4) + 4096);
  for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
    end = end_of_line(line);
    if (begins(line, "define ")) note_attributes(line, end, wanted, sizeof wanted / sizeof *wanted);
  }
  for (const char *line = text, *end; *line && status == MPS_STATUS_OK; line = *end ? end + 1 : end) {
    end = end_of_line(line);
    const char *open = begins(line, "attributes #") ? strchr(line, '{') : NULL;
    size_t number = open ? strtoul(line + 12, NULL, 10) : 0;
    if (open && number < sizeof wanted / sizeof *wanted && wanted[number] && !find_before(line, end, "noinline") &&
        !find_before(line, end, "alwaysinline")) {
      status = checked_add(&out, line, (size_t)(open + 1 - line));
      if (status == MPS_STATUS_OK) status = checked_print(&out, " alwaysinline");
      line = open + 1;
    }
    if (status == MPS_STATUS_OK) status = checked_add(&out, line, (size_t)(end - line) + (*end ? 1 : 0));
  }
  *out_text = out.items;
  *out_length = out.count;
  if (status == MPS_STATUS_OK) return status;
  MPS_ARRAY_FINI(&out);
  *out_text = NULL;
  return status;
}

/* ---- variables ---- */
/* Those of the library's own make are left as they are. */
static bool is_users(checked_span name) {
  static const char *const own[] = {"openmps_", "llvm.", "mps_", "_ZL8mps_", "_ZL9mps_", "_ZL10mps_", "_ZL11mps_", "_ZL12mps_", "_ZL13mps_",
                                    "_ZL14mps_", "_ZL15mps_", "_ZL16mps_", "__start_mps_"};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (begins(name.text + 1, own[i])) return false;
  return !find_before(name.text, name.text + name.length, "openmps_detail");
}

static mps_status read_object(module *m, const char *line) {
  const char *end = end_of_line(line), *name_end = skip_name(line);
  checked_span name = checked_between(line, name_end);
  if (!begins(name_end, " = ") || !is_users(name) || find_before(line, end, " external ")) return MPS_STATUS_OK;
  bool local = find_before(name_end, end, " thread_local") != NULL;
  const char *type = find_before(name_end, end, local ? " global " : " constant ");
  if (!type) return MPS_STATUS_OK;
  type += local ? 8 : 10;
  object o = {.name = name, .type = checked_between(type, checked_skip_type(type)), .threadgroup = local};
  /* The last one: a text in the value may say anything. */
  const char *align = NULL;
  for (const char *p = type; (p = find_before(p, end, ", align ")) != NULL; p += 8) align = p;
  o.alignment = align ? (uint32_t)strtoul(align + 8, NULL, 10) : 1;
  if (m->objects.count >= MPS_CHECKED_REGIONS - MPS_CHECKED_OBJECTS) return MPS_STATUS_OK; /* the rest goes by its own address */
  MPS_TRY(MPS_ARRAY_RESERVE(&m->objects, 1));
  MPS_ARRAY_PUSH(&m->objects, o);
  return MPS_STATUS_OK;
}

static uint64_t address_of_object(size_t index) {
  return MPS_CHECKED_MARK | (uint64_t)(MPS_CHECKED_OBJECTS + index) << MPS_CHECKED_REGION_SHIFT | MPS_CHECKED_MIDDLE;
}

/* Adds a piece of a function with addresses in place of variables. */
static mps_status add_code(module *m, const char *begin, const char *end) {
  const char *done = begin;
  for (const char *p = begin; p < end; p++) {
    if (*p == '!') break; /* metadata */
    if (*p != '@') continue;
    const char *name_end = skip_name(p);
    for (size_t i = 0; i < m->objects.count; i++) {
      const object *o = &m->objects.items[i];
      if (o->name.length != (size_t)(name_end - p) || memcmp(o->name.text, p, o->name.length) != 0) continue;
      MPS_TRY(checked_add(&m->out, done, (size_t)(p - done)));
      MPS_TRY(checked_print(&m->out, "inttoptr (i64 %llu to ptr)", (unsigned long long)address_of_object(i)));
      done = name_end;
      break;
    }
    p = name_end - 1;
  }
  return checked_add(&m->out, done, (size_t)(end - done));
}

/* ---- sites ---- */
static mps_status add_site(module *m, checked_place place, uint32_t kind, uint32_t alignment, size_t *out_index) {
  MPS_TRY(MPS_ARRAY_RESERVE(&m->sites, 1));
  *out_index = m->sites.count;
  MPS_ARRAY_PUSH(&m->sites, ((site){place, kind, alignment}));
  return MPS_STATUS_OK;
}

static checked_place place_of(const module *m, const char *line, const char *end) {
  const char *mark = NULL;
  for (const char *p = line; (p = find_before(p, end, "!dbg !")) != NULL; p += 6) mark = p;
  if (!mark) return (checked_place){{"", 0}, 0, false};
  return checked_find_place(&m->metadata, &m->folders, (uint32_t)strtoul(mark + 6, NULL, 10));
}

/* ---- accesses ---- */
/* One pointer of an instruction. `count`: where the length in bytes stands, for whole objects; else the type says it. */
typedef struct access {
  checked_span pointer, type, count;
  uint32_t kind, alignment;
} access;

/* The call in front of the access; its result has the number *out_value. */
static mps_status add_check(module *m, const access *a, checked_place place, uint32_t *out_value) {
  size_t index = 0;
  MPS_TRY(add_site(m, place, a->kind, a->alignment ? a->alignment : 1, &index));
  *out_value = m->values++;
  MPS_TRY(checked_print(&m->out, "  %%mps.v%u = call ptr @mps.access(ptr ", *out_value));
  MPS_TRY(add_code(m, a->pointer.text, a->pointer.text + a->pointer.length));
  MPS_TRY(checked_print(&m->out, ", i64 "));
  if (a->count.length) MPS_TRY(checked_add(&m->out, a->count.text, a->count.length));
  else MPS_TRY(checked_print_bytes(&m->out, a->type));
  return checked_print(&m->out, ", i32 %zu)\n", index);
}

static mps_status add_line_with(module *m, const char *line, const char *end, const access *accesses, const uint32_t *values, int count) {
  const char *done = line;
  for (int i = 0; i < count; i++) {
    if (values[i] == UINT32_MAX) continue;
    MPS_TRY(add_code(m, done, accesses[i].pointer.text));
    MPS_TRY(checked_print(&m->out, "%%mps.v%u", values[i]));
    done = accesses[i].pointer.text + accesses[i].pointer.length;
  }
  MPS_TRY(add_code(m, done, end));
  return checked_print(&m->out, "\n");
}

static mps_status add_checked(module *m, const char *line, const char *end, const access *accesses, int count) {
  checked_place place = place_of(m, line, end);
  uint32_t values[2] = {UINT32_MAX, UINT32_MAX};
  for (int i = 0; i < count && !place.machinery; i++)
    if (!checked_stack_owns(m->stack, accesses[i].pointer)) MPS_TRY(add_check(m, &accesses[i], place, &values[i]));
  return add_line_with(m, line, end, accesses, values, count);
}

static const char *skip_word(const char *p, const char *word) { return begins(p, word) ? p + strlen(word) : p; }

/* A pointer operand behind "ptr ": ends at a comma, or at a space outside of brackets. */
static checked_span pointer_at(const char *p) {
  const char *end = checked_skip(p), *q = p;
  if (*p == '%' || (*p == '@' && p[1] != '"'))
    while (q < end && *q != ' ') q++;
  else q = end;
  return checked_between(p, q);
}

static bool read_load_or_store(const char *p, const char *end, access *out) {
  bool store = begins(p, "store ");
  p = skip_word(p, store ? "store " : "load ");
  const char *atomic = p;
  p = skip_word(p, "atomic ");
  out->kind = (store ? MPS_SITE_WRITE : MPS_SITE_READ) | (p != atomic ? MPS_SITE_ATOMIC : 0);
  p = skip_word(p, "volatile ");
  const char *type = p;
  p = checked_skip_type(p);
  if (store) {
    out->type = checked_between(type, p);
    p = checked_skip(p);
  } else {
    const char *comma = checked_skip(type);
    out->type = checked_between(type, comma);
    p = comma;
  }
  if (!begins(p, ", ptr ")) return false;
  out->pointer = pointer_at(p + 6);
  out->alignment = number_behind(out->pointer.text + out->pointer.length, end, ", align ");
  return true;
}

static bool read_atomic(const char *p, const char *end, access *out) {
  const char *pointer = find_before(p, end, " ptr ");
  if (!pointer) return false;
  out->kind = MPS_SITE_READ | MPS_SITE_WRITE | MPS_SITE_ATOMIC;
  out->pointer = pointer_at(pointer + 5);
  const char *type = out->pointer.text + out->pointer.length;
  if (!begins(type, ", ")) return false;
  type += 2;
  out->type = checked_between(type, checked_skip_type(type));
  out->alignment = number_behind(type, end, ", align ");
  return true;
}

/* The value of an argument like "ptr noundef align 16 %3". */
static checked_span argument_at(const char *p, uint32_t *out_alignment) {
  const char *end = checked_skip(p);
  *out_alignment = number_behind(p, end, "align ");
  for (const char *q = p; q < end; q++) {
    if (*q == '%' || *q == '@' || begins(q, "inttoptr (") || begins(q, "getelementptr ") || begins(q, "null")) return checked_between(q, end);
    if (q[0] == 'i' && q[1] == '6' && q[2] == '4') return checked_between(q + 4, end);
  }
  return (checked_span){p, 0};
}

/* memcpy, memmove and memset. Returns how many pointers there are. */
static int read_block(const char *p, access *out) {
  const char *argument = strchr(p, '(');
  bool set = begins(p, "@llvm.memset");
  if (!argument) return 0;
  argument++;
  const char *second = checked_skip(argument);
  if (*second != ',') return 0;
  const char *third = checked_skip(second + 2);
  if (*third != ',') return 0;
  uint32_t alignment;
  checked_span count = argument_at(third + 2, &alignment);
  out[0] = (access){.kind = MPS_SITE_WRITE | (set ? 0 : MPS_SITE_COPY), .count = count};
  out[0].pointer = argument_at(argument, &out[0].alignment);
  if (set) return 1;
  out[1] = (access){.kind = MPS_SITE_READ | MPS_SITE_COPY, .count = count};
  out[1].pointer = argument_at(second + 2, &out[1].alignment);
  return 2;
}

/* ---- divisions ---- */
static bool is_division(const char *p) { return begins(p, "sdiv ") || begins(p, "udiv ") || begins(p, "srem ") || begins(p, "urem "); }

static mps_status add_ones(module *m, checked_span type) {
  if (*type.text != '<') return checked_print(&m->out, "1");
  char *times;
  unsigned long count = strtoul(type.text + 1, &times, 10);
  checked_span element = {times + 3, (size_t)(type.text + type.length - 1 - (times + 3))};
  for (unsigned long i = 0; i < count; i++)
    MPS_TRY(checked_print(&m->out, "%s%.*s 1%s", i ? ", " : "<", (int)element.length, element.text, i + 1 == count ? ">" : ""));
  return MPS_STATUS_OK;
}

/* By one in place of zero. */
static mps_status add_division(module *m, const char *line, const char *what, const char *end) {
  checked_place place = place_of(m, line, end);
  const char *type = skip_word(what + 5, "exact "), *value = checked_skip_type(type), *comma = checked_skip(value);
  if (place.line == 0 || *comma != ',') return add_line_with(m, line, end, NULL, NULL, 0);
  checked_span t = checked_between(type, value);
  while (t.length && t.text[t.length - 1] == ' ') t.length--;
  checked_span divisor = checked_between(comma + 2, checked_skip(comma + 2));
  size_t index = 0;
  MPS_TRY(add_site(m, place, MPS_SITE_DIVISION, 1, &index));
  uint32_t n = m->values++;
  bool vector = *t.text == '<';
  unsigned long lanes = vector ? strtoul(t.text + 1, NULL, 10) : 1;
  MPS_TRY(checked_print(&m->out, "  %%mps.z%u = icmp eq %.*s %.*s, zeroinitializer\n", n, (int)t.length, t.text, (int)divisor.length, divisor.text));
  if (vector) {
    MPS_TRY(checked_print(&m->out, "  %%mps.b%u = bitcast <%lu x i1> %%mps.z%u to i%lu\n", n, lanes, n, lanes));
    MPS_TRY(checked_print(&m->out, "  %%mps.a%u = zext i%lu %%mps.b%u to i32\n", n, lanes, n));
    MPS_TRY(checked_print(&m->out, "  %%mps.d%u = select <%lu x i1> %%mps.z%u, %.*s ", n, lanes, n, (int)t.length, t.text));
  } else {
    MPS_TRY(checked_print(&m->out, "  %%mps.a%u = zext i1 %%mps.z%u to i32\n", n, n));
    MPS_TRY(checked_print(&m->out, "  %%mps.d%u = select i1 %%mps.z%u, %.*s ", n, n, (int)t.length, t.text));
  }
  MPS_TRY(add_ones(m, t));
  MPS_TRY(checked_print(&m->out, ", %.*s %.*s\n  call void @mps.division(i32 %%mps.a%u, i32 %zu)\n", (int)t.length, t.text, (int)divisor.length,
                        divisor.text, n, index));
  MPS_TRY(checked_add(&m->out, line, (size_t)(comma + 2 - line)));
  return checked_print(&m->out, "%%mps.d%u%.*s\n", n, (int)(end - (divisor.text + divisor.length)), divisor.text + divisor.length);
}

/* ---- meetings ---- */
static mps_status add_meeting(module *m, const char *line, const char *end, uint32_t kind) {
  checked_place place = place_of(m, line, end);
  size_t index = 0;
  /* The call itself stands in <metal_compute>; the user's line is further out. */
  MPS_TRY(add_site(m, place, kind, 1, &index));
  uint32_t n = m->values++;
  MPS_TRY(checked_print(&m->out, "  %%mps.t%u = call i32 @mps.before_meeting(i32 %zu)\n", n, index));
  MPS_TRY(add_line_with(m, line, end, NULL, NULL, 0));
  return checked_print(&m->out, "  call void @mps.after_meeting(i32 %%mps.t%u)\n", n);
}

/* ---- lines ---- */
static const char *instruction_of(const char *line) {
  while (*line == ' ') line++;
  if (*line != '%') return line;
  while (*line != ' ' && *line != '\n' && *line) line++;
  return begins(line, " = ") ? line + 3 : line;
}

static mps_status add_call(module *m, const char *line, const char *what, const char *end) {
  const char *name = find_before(what, end, "@");
  access accesses[2];
  if (!name) return add_line_with(m, line, end, NULL, NULL, 0);
  if (begins(name, "@llvm.threadlocal.address")) { /* the address is no longer one */
    uint32_t alignment;
    checked_span variable = argument_at(strchr(name, '(') + 1, &alignment);
    MPS_TRY(checked_add(&m->out, line, (size_t)(what - line)));
    MPS_TRY(checked_print(&m->out, "getelementptr i8, ptr "));
    MPS_TRY(add_code(m, variable.text, variable.text + variable.length));
    return checked_print(&m->out, ", i64 0\n");
  }
  if (begins(name, "@llvm.memcpy") || begins(name, "@llvm.memmove") || begins(name, "@llvm.memset"))
    return add_checked(m, line, end, accesses, read_block(name, accesses));
  if (begins(name, "@_ZN5metal14openmps_detail4waitEv(")) return add_meeting(m, line, end, MPS_SITE_BARRIER);
  if (begins(name, "@_ZN5metal14openmps_detail4meetEPKvjPNS0_7meetingE(")) return add_meeting(m, line, end, MPS_SITE_MEETING);
  return add_line_with(m, line, end, NULL, NULL, 0);
}

static mps_status add_line(module *m, const char *line, const char *end) {
  const char *what = instruction_of(line);
  checked_stack_line(m->stack, line, end);
  access a = {0};
  if ((begins(what, "load ") || begins(what, "store ")) && read_load_or_store(what, end, &a)) return add_checked(m, line, end, &a, 1);
  if ((begins(what, "atomicrmw ") || begins(what, "cmpxchg ")) && read_atomic(what, end, &a)) return add_checked(m, line, end, &a, 1);
  if (is_division(what)) return add_division(m, line, what, end);
  const char *call = begins(what, "tail ") ? what + 5 : begins(what, "notail ") ? what + 7 : what;
  if (begins(call, "call ")) return add_call(m, line, what, end);
  return add_line_with(m, line, end, NULL, NULL, 0);
}

/* The function whose definition begins at `line`. Returns behind it. */
static mps_status add_function(module *m, const char *line, const char **out_end) {
  const char *close = strstr(line, "\n}"), *end = end_of_line(line);
  *out_end = close ? close + 1 : line + strlen(line);
  m->values = 0;
  m->stack = checked_stack_create(end, *out_end);
  if (!m->stack) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory to check a shader");
  mps_status status = checked_add(&m->out, line, (size_t)(end - line) + 1);
  for (line = end + 1; line < *out_end && status == MPS_STATUS_OK; line = end + 1) {
    end = end_of_line(line);
    status = add_line(m, line, end);
  }
  checked_stack_free(m->stack);
  m->stack = NULL;
  return status;
}

/* ---- the table ---- */
/* What a mangled name ends with: "tile" of "_ZZ1fPfE4tile". */
static checked_span short_name(checked_span name) {
  const char *end = name.text + name.length;
  if (name.length > 1 && end[-1] == 'E') end--;
  for (const char *p = end - 1; p > name.text; p--) {
    if (*p < '0' || *p > '9') continue;
    while (p > name.text && p[-1] >= '0' && p[-1] <= '9') p--;
    char *behind;
    unsigned long length = strtoul(p, &behind, 10);
    size_t left = (size_t)(end - behind);
    if (length > 0 && length <= left && (length == left || behind[length] == '_')) return checked_between(behind, behind + length);
  }
  return checked_between(name.text + 1, name.text + name.length);
}

static mps_status add_text(checked_text *out, const char *prefix, size_t number, checked_span text) {
  return checked_print(out, "@mps.%s.%zu = private unnamed_addr constant [%zu x i8] c\"%.*s\\00\"\n", prefix, number, text.length + 1,
                       (int)text.length, text.text);
}

static mps_status add_object_rows(module *m) {
  checked_text *out = &m->out;
  for (size_t i = 0; i < m->objects.count; i++) MPS_TRY(add_text(out, "name", i, short_name(m->objects.items[i].name)));
  MPS_TRY(checked_print(out, "@mps.objects = internal constant [%zu x { ptr, ptr, i64, i64 }] [", m->objects.count));
  for (size_t i = 0; i < m->objects.count; i++) {
    const object *o = &m->objects.items[i];
    MPS_TRY(checked_print(out, "%s{ ptr, ptr, i64, i64 } { ptr %.*s, ptr @mps.name.%zu, i64 ", i ? ", " : "", o->threadgroup ? 4 : (int)o->name.length,
                          o->threadgroup ? "null" : o->name.text, i));
    MPS_TRY(checked_print_bytes(out, o->type));
    MPS_TRY(checked_print(out, ", i64 %u }", o->alignment));
  }
  return checked_print(out, "]\n");
}

static mps_status add_site_rows(module *m) {
  checked_text *out = &m->out;
  MPS_ARRAY(checked_span) files = {0};
  checked_text rows = {0};
  mps_status status = MPS_STATUS_OK;
  for (size_t i = 0; i < m->sites.count && status == MPS_STATUS_OK; i++) {
    const site *s = &m->sites.items[i];
    size_t file = 0;
    while (file < files.count && files.items[file].text != s->place.file.text) file++;
    if (file == files.count) {
      status = MPS_ARRAY_RESERVE(&files, 1);
      if (status == MPS_STATUS_OK) MPS_ARRAY_PUSH(&files, s->place.file);
      if (status == MPS_STATUS_OK) status = add_text(out, "file", file, s->place.file);
    }
    if (status == MPS_STATUS_OK)
      status = checked_print(&rows, "%s{ ptr, i32, i32, i32, i32 } { ptr @mps.file.%zu, i32 %u, i32 %u, i32 %u, i32 0 }", i ? ", " : "", file,
                             s->place.line, s->kind, s->alignment);
  }
  if (status == MPS_STATUS_OK)
    status = checked_print(out, "@mps.sites = internal constant [%zu x { ptr, i32, i32, i32, i32 }] [%s]\n", m->sites.count,
                           rows.items ? rows.items : "");
  MPS_ARRAY_FINI(&rows);
  MPS_ARRAY_FINI(&files);
  return status;
}

static mps_status add_table(module *m) {
  MPS_TRY(add_object_rows(m));
  MPS_TRY(add_site_rows(m));
  return checked_print(&m->out,
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
}

static mps_status instrument(module *m) {
  MPS_TRY(checked_metadata_read(m->text, &m->metadata));
  for (const char *line = m->text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
    if (*line == '@') MPS_TRY(read_object(m, line));
  for (const char *line = m->text, *end; *line; line = *end ? end + 1 : end) {
    if (begins(line, "define ")) {
      MPS_TRY(add_function(m, line, &end));
      end = end_of_line(end);
      MPS_TRY(checked_print(&m->out, "}\n"));
      continue;
    }
    end = end_of_line(line);
    MPS_TRY(checked_add(&m->out, line, (size_t)(end - line) + (*end ? 1 : 0)));
  }
  return add_table(m);
}

mps_status mps_checked_instrument(const char *text, size_t length, const char *include, const char *include_core, char **out_text,
                                  size_t *out_length) {
  module m = {.text = text, .folders = {include, include_core}};
  mps_status status = MPS_ARRAY_RESERVE(&m.out, length * 2 + 4096);
  if (status == MPS_STATUS_OK) status = instrument(&m);
  MPS_ARRAY_FINI(&m.metadata);
  MPS_ARRAY_FINI(&m.objects);
  MPS_ARRAY_FINI(&m.sites);
  *out_text = m.out.items;
  *out_length = m.out.count;
  if (status == MPS_STATUS_OK) return status;
  MPS_ARRAY_FINI(&m.out);
  *out_text = NULL;
  return status;
}
