/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_parse: reads one thread function: blocks, instructions, which values and labels they name. Instructions are a list of known ones;
 * everything else is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shader/lanes_internal.h"

static lanes_span trimmed(lanes_span text) {
  while (text.length && (text.at[0] == ' ' || text.at[0] == '\t')) text = lanes_behind(text, 1);
  while (text.length && strchr(" \t\r\n", text.at[text.length - 1])) text.length--;
  return text;
}

static lanes_span first_word(lanes_span text) {
  size_t length = 0;
  while (length < text.length && text.at[length] != ' ' && text.at[length] != '(') length++;
  return (lanes_span){text.at, length};
}

/* ---- names ---- */
static bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$' || c == '-';
}

/* The length of the name behind a %, quotes included, and the name without them. */
static size_t read_name(lanes_span text, lanes_span *name) {
  size_t length = 0;
  if (text.length && text.at[0] == '"') {
    lanes_span inner = lanes_behind(text, 1);
    *name = (lanes_span){inner.at, lanes_find(inner, "\"")};
    return name->length < inner.length ? name->length + 2 : 0;
  }
  while (length < text.length && is_name(text.at[length])) length++;
  *name = (lanes_span){text.at, length};
  return length;
}

static mps_status define_name(lanes_function *f, lanes_span name, uint32_t index, bool is_block) {
  lanes_reference *r = lanes_allocate(f->module, sizeof *r);
  if (!r) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a function's names");
  r->index = index;
  r->is_block = is_block;
  if (mps_map_get(&f->names, name.at, name.length)) return lanes_refuse("two values are called %%%.*s", LANES_SPAN(name));
  return mps_map_set(&f->names, name.at, name.length, r);
}

static mps_status define_value(lanes_function *f, lanes_span name, lanes_span type, uint32_t instruction, uint32_t *out_value) {
  MPS_TRY(MPS_ARRAY_RESERVE(&f->values, 1));
  *out_value = (uint32_t)f->values.count;
  MPS_ARRAY_PUSH(&f->values, ((lanes_value){.name = name, .type = type, .instruction = instruction, .cost = LANES_NONE}));
  return define_name(f, name, *out_value, false);
}

static mps_status define_block(lanes_function *f, lanes_span name) {
  MPS_TRY(MPS_ARRAY_RESERVE(&f->blocks, 1));
  uint32_t block = (uint32_t)f->blocks.count;
  MPS_ARRAY_PUSH(&f->blocks, ((lanes_block){.name = name, .first = (uint32_t)f->instructions.count}));
  return define_name(f, name, block, true);
}

/* ---- lists in brackets ---- */
/* Takes what is before the next comma outside of brackets off `list`; false at the end. */
static bool next_item(lanes_span *list, lanes_span *item) {
  size_t depth = 0, i = 0;
  if (trimmed(*list).length == 0) return false;
  for (; i < list->length; i++) {
    char c = list->at[i];
    if (strchr("([{<", c)) depth++;
    else if (strchr(")]}>", c)) depth--;
    else if (c == '"')
      while (i + 1 < list->length && list->at[++i] != '"') continue;
    else if (c == ',' && depth == 0) break;
  }
  *item = trimmed((lanes_span){list->at, i});
  *list = lanes_behind(*list, i < list->length ? i + 1 : i);
  return true;
}

/* What is in the brackets that begin here. */
static bool bracketed(lanes_span text, lanes_span *inside) {
  size_t depth = 0;
  if (text.length == 0 || !strchr("([{<", text.at[0])) return false;
  for (size_t i = 0; i < text.length; i++) {
    if (strchr("([{<", text.at[i])) depth++;
    if (!strchr(")]}>", text.at[i]) || --depth) continue;
    *inside = (lanes_span){text.at + 1, i - 1};
    return true;
  }
  return false;
}

/* ---- the head ---- */
static mps_status read_argument(lanes_function *f, lanes_span list, const char *type, uint32_t *out_value) {
  lanes_span name = {0};
  for (size_t i = list.length; i-- > 0;) {
    if (list.at[i] != '%') continue;
    read_name(lanes_behind(list, i + 1), &name);
    break;
  }
  if (!name.length || !lanes_starts(list, type) || (list.length > strlen(type) && list.at[strlen(type)] != ' '))
    return lanes_refuse("@%.*s has an argument '%.*s', expected %s", LANES_SPAN(f->definition->name), LANES_SPAN(list), type);
  return define_value(f, name, (lanes_span){type, strlen(type)}, LANES_NONE, out_value);
}

/* The strings of an attribute group: what the processor is. Other attributes speak of the function as it was. */
static mps_status keep_strings(lanes_function *f, lanes_span all) {
  char *out = lanes_allocate(f->module, all.length + 1);
  if (!out) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for attributes");
  size_t used = 0;
  for (size_t i = 0; i < all.length; i++) {
    if (all.at[i] != '"') continue;
    size_t begin = i;
    for (int quotes = 0; i < all.length && !(quotes >= 2 && all.at[i] == ' '); i++) quotes += all.at[i] == '"';
    memcpy(out + used, all.at + begin, i - begin);
    used += i - begin;
    out[used++] = ' ';
    if (used > all.length) used = all.length;
  }
  f->attributes = (lanes_span){out, used};
  return MPS_STATUS_OK;
}

static mps_status read_head(lanes_function *f) {
  lanes_span head = f->definition->head, arguments, first = {0}, second = {0}, more = {0};
  size_t at = lanes_find(head, "@");
  while (at < head.length && head.at[at] != '(') at++;
  if (!bracketed(lanes_behind(head, at), &arguments)) return lanes_refuse("@%.*s: its head was not understood", LANES_SPAN(f->definition->name));
  if (!lanes_find(head, " void @") || lanes_find(head, " void @") == head.length)
    return lanes_refuse("@%.*s returns something", LANES_SPAN(f->definition->name));
  if (lanes_find(head, " personality ") < head.length) return lanes_refuse("@%.*s has exceptions", LANES_SPAN(f->definition->name));
  next_item(&arguments, &first);
  next_item(&arguments, &second);
  if (next_item(&arguments, &more)) return lanes_refuse("@%.*s has more than two arguments", LANES_SPAN(f->definition->name));
  MPS_TRY(read_argument(f, first, "ptr", &f->context));
  MPS_TRY(read_argument(f, second, "i32", &f->thread));
  lanes_span rest = lanes_behind(head, at + 2 + (size_t)(arguments.at - head.at - (ptrdiff_t)at - 1));
  size_t group = lanes_find(rest, "#");
  if (group == rest.length) return MPS_STATUS_OK;
  lanes_span name = first_word(lanes_behind(rest, group));
  const lanes_span *attributes = mps_map_get(&f->module->attributes, name.at, name.length);
  if (!attributes) return MPS_STATUS_OK;
  if (lanes_find(*attributes, "strictfp") < attributes->length)
    return lanes_refuse("@%.*s has strict floating point", LANES_SPAN(f->definition->name));
  return keep_strings(f, *attributes);
}

/* ---- instructions ---- */
static const struct {
  const char *name;
  lanes_kind kind;
} opcodes[] = {
  {"add", LANES_PURE}, {"sub", LANES_PURE}, {"mul", LANES_PURE}, {"shl", LANES_PURE}, {"lshr", LANES_PURE}, {"ashr", LANES_PURE},
  {"and", LANES_PURE}, {"or", LANES_PURE}, {"xor", LANES_PURE}, {"fneg", LANES_PURE}, {"fadd", LANES_PURE}, {"fsub", LANES_PURE},
  {"fmul", LANES_PURE}, {"fdiv", LANES_PURE}, {"frem", LANES_PURE}, {"icmp", LANES_PURE}, {"fcmp", LANES_PURE}, {"select", LANES_PURE},
  {"getelementptr", LANES_PURE}, {"trunc", LANES_PURE}, {"zext", LANES_PURE}, {"sext", LANES_PURE}, {"fptrunc", LANES_PURE},
  {"fpext", LANES_PURE}, {"fptoui", LANES_PURE}, {"fptosi", LANES_PURE}, {"uitofp", LANES_PURE}, {"sitofp", LANES_PURE},
  {"ptrtoint", LANES_PURE}, {"ptrtoaddr", LANES_PURE}, {"inttoptr", LANES_PURE}, {"bitcast", LANES_PURE}, {"addrspacecast", LANES_PURE},
  {"extractvalue", LANES_PURE}, {"insertvalue", LANES_PURE}, {"extractelement", LANES_PURE}, {"insertelement", LANES_PURE},
  {"shufflevector", LANES_PURE}, {"udiv", LANES_OTHER}, {"sdiv", LANES_OTHER}, {"urem", LANES_OTHER}, {"srem", LANES_OTHER},
  {"freeze", LANES_OTHER}, {"load", LANES_LOAD}, {"store", LANES_MEMORY}, {"atomicrmw", LANES_MEMORY}, {"cmpxchg", LANES_MEMORY},
  {"fence", LANES_OTHER}, {"alloca", LANES_ALLOCA}, {"phi", LANES_PHI}, {"call", LANES_CALL}, {"tail", LANES_CALL}, {"notail", LANES_CALL},
  {"br", LANES_BRANCH}, {"switch", LANES_BRANCH}, {"ret", LANES_RETURN}, {"unreachable", LANES_UNREACHABLE},
};

static bool find_kind(lanes_span opcode, lanes_kind *kind) {
  for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
    if (lanes_is(opcode, opcodes[i].name)) return *kind = opcodes[i].kind, true;
  return false;
}

/* Cuts ", !tbaa !9, ..." off the text. */
static void cut_metadata(lanes_instruction *i) {
  lanes_span t = i->text;
  for (size_t at = 0; at + 3 < t.length; at++) {
    if (t.at[at] == '"') {
      do at++;
      while (at < t.length && t.at[at] != '"');
    } else if (t.at[at] == ',' && t.at[at + 1] == ' ' && t.at[at + 2] == '!' && t.at[at + 3] >= 'a' && t.at[at + 3] <= 'z') {
      i->metadata = lanes_behind(t, at);
      i->text.length = at;
      return;
    }
  }
}

/* Calls that say something of the function as it was, and do nothing. */
static bool is_dropped(lanes_span text) {
  static const char *const names[] = {"@llvm.lifetime.", "@llvm.assume(", "@llvm.experimental.noalias.scope.decl(", "@llvm.dbg."};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (lanes_find(text, names[i]) < text.length) return true;
  return false;
}

/* The operands of a call where threads meet: "(float noundef %3, i32 1)". */
static mps_status read_operands(lanes_function *f, lanes_site *site, lanes_span list) {
  static const char *const words[] = {"noundef", "zeroext", "signext", "nonnull", "inreg", "range(", "nofpclass(", "dereferenceable(", "align "};
  lanes_span item;
  site->operands = lanes_allocate(f->module, (list.length / 2 + 1) * sizeof *site->operands);
  if (!site->operands) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for operands");
  while (next_item(&list, &item)) {
    lanes_operand *o = &site->operands[site->operand_count++];
    size_t length = lanes_type_length(item);
    o->type = (lanes_span){item.at, length};
    o->value = LANES_NONE;
    item = trimmed(lanes_behind(item, length));
    for (size_t w = 0; length && w < sizeof words / sizeof *words; w++) {
      if (!lanes_starts(item, words[w])) continue;
      size_t skip = strlen(words[w]), inner = lanes_find(item, ")");
      if (words[w][skip - 1] == '(') skip = inner == item.length ? inner : inner + 1;
      if (words[w][skip - 1] == ' ') skip += strspn(item.at + skip, "0123456789");
      item = trimmed(lanes_behind(item, skip));
      w = SIZE_MAX; /* from the first word again */
    }
    if (lanes_starts(item, "@mps_lanes_")) { /* it is there to have that function compiled */
      site->operand_count--;
      continue;
    }
    o->text = item;
    o->bytes = (uint32_t)lanes_type_bytes(f->module, o->type);
    if (o->bytes == 0 || item.length == 0)
      return lanes_refuse("an operand of mps_collective_%.*s was not understood", LANES_SPAN(site->name));
  }
  return MPS_STATUS_OK;
}

static const char collective[] = "@mps_collective_";

/* "mps_collective_loop_next(i32 3)": about the loop that is called 3. */
static mps_status read_round(lanes_function *f, lanes_instruction *i, lanes_span callee) {
  lanes_span word = lanes_behind(callee, sizeof collective - 1 + 5), arguments;
  bool known = lanes_starts(word, "enter(") || lanes_starts(word, "next(") || lanes_starts(word, "leave(");
  if (!known || !bracketed(lanes_behind(word, lanes_find(word, "(")), &arguments)) return lanes_refuse("not understood: %.*s", LANES_SPAN(i->text));
  arguments = trimmed(arguments);
  size_t at = arguments.length;
  while (at > 0 && arguments.at[at - 1] >= '0' && arguments.at[at - 1] <= '9') at--;
  if (!lanes_starts(arguments, "i32 ") || at == arguments.length || arguments.at[at - 1] != ' ')
    return lanes_refuse("a loop has no constant name: %.*s", LANES_SPAN(i->text));
  i->kind = LANES_ROUND;
  i->round = word.at[0];
  uint32_t id = (uint32_t)strtoul(arguments.at + at, NULL, 10);
  for (i->loop = 0; i->loop < f->loops.count && f->loops.items[i->loop].id != id;) i->loop++;
  if (i->loop < f->loops.count) return MPS_STATUS_OK;
  MPS_TRY(MPS_ARRAY_RESERVE(&f->loops, 1));
  MPS_ARRAY_PUSH(&f->loops, ((lanes_loop){.id = id}));
  return MPS_STATUS_OK;
}

static mps_status read_collective(lanes_function *f, lanes_instruction *i, lanes_span callee) {
  i->kind = LANES_COLLECTIVE;
  lanes_site *sites = lanes_allocate(f->module, (f->site_count + 1) * sizeof *sites);
  if (!sites) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for %u meetings", f->site_count);
  if (f->site_count) memcpy(sites, f->sites, f->site_count * sizeof *sites);
  f->sites = sites;
  i->site = f->site_count++;
  lanes_site *site = &sites[i->site];
  size_t open = lanes_find(callee, "(");
  lanes_span arguments;
  *site = (lanes_site){.instruction = (uint32_t)f->instructions.count, .result = LANES_NONE};
  site->name = (lanes_span){callee.at + sizeof collective - 1, open - (sizeof collective - 1)};
  site->barrier = lanes_is(site->name, "barrier");
  site->exchange = !site->barrier && !lanes_is(site->name, "simdgroup_barrier");
  if (!bracketed(lanes_behind(callee, open), &arguments))
    return lanes_refuse("a call of mps_collective_%.*s was not understood", LANES_SPAN(site->name));
  return site->exchange ? read_operands(f, site, arguments) : MPS_STATUS_OK;
}

/* "call i32 @mps_lane_index()" becomes "and i32 %thread, 31". */
static mps_status read_lane_index(lanes_function *f, lanes_instruction *i) {
  const lanes_value *thread = &f->values.items[f->thread];
  size_t room = thread->name.length + 24;
  char *text = lanes_allocate(f->module, room);
  if (!text) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for an instruction");
  int length = snprintf(text, room, "and i32 %%%.*s, 31", LANES_SPAN(thread->name));
  *i = (lanes_instruction){.text = {text, (size_t)length}, .kind = LANES_PURE, .result = LANES_NONE, .site = LANES_NONE, .block = i->block};
  return MPS_STATUS_OK;
}

static mps_status read_call(lanes_function *f, lanes_instruction *i, lanes_span type) {
  static const char *const pure[] = {"@llvm.umin.", "@llvm.umax.", "@llvm.smin.", "@llvm.smax.", "@llvm.abs.", "@llvm.fabs.", "@llvm.fshl.",
                                     "@llvm.fshr.", "@llvm.ctpop.", "@llvm.threadlocal.address"};
  static const char *const refused[] = {"@llvm.stacksave", "@llvm.stackrestore", "@llvm.eh.", "@llvm.va_", "@llvm.coro.", "@llvm.localescape",
                                        "@llvm.returnaddress", "@llvm.frameaddress", "@mps_threads_", "@mps_group_"};
  lanes_span callee = trimmed(lanes_behind(i->text, (size_t)(type.at - i->text.at) + type.length));
  if (lanes_find(i->text, "metadata ") < i->text.length || callee.length == 0 || (callee.at[0] != '@' && callee.at[0] != '%'))
    return lanes_refuse("a call was not understood: %.*s", LANES_SPAN(i->text));
  for (size_t n = 0; n < sizeof refused / sizeof *refused; n++)
    if (lanes_starts(callee, refused[n])) return lanes_refuse("a call of %.*s", LANES_SPAN(first_word(callee)));
  if (lanes_starts(callee, "@mps_lane_index(")) return read_lane_index(f, i);
  if (lanes_starts(callee, "@mps_collective_loop_")) return read_round(f, i, callee);
  if (lanes_starts(callee, collective)) return read_collective(f, i, callee);
  for (size_t n = 0; n < sizeof pure / sizeof *pure; n++)
    if (lanes_starts(callee, pure[n])) i->kind = LANES_PURE;
  return MPS_STATUS_OK;
}

/* An array that a thread keeps to itself: how large it is. */
static mps_status read_private_array(lanes_function *f, const lanes_instruction *i, lanes_value *v) {
  lanes_span list = trimmed(lanes_behind(i->text, strlen("alloca"))), item, rest;
  next_item(&list, &item);
  uint64_t bytes = lanes_type_length(item) == item.length ? lanes_type_bytes(f->module, item) : 0, count = 1, alignment = 16;
  while (bytes && next_item(&list, &item)) {
    if (lanes_starts(item, "align ")) {
      alignment = strtoull(item.at + 6, NULL, 10);
    } else {
      rest = trimmed(lanes_behind(item, lanes_type_length(item)));
      if (!lanes_starts(item, "i") || rest.length == 0 || rest.at[0] < '1' || rest.at[0] > '9') bytes = 0; /* its length is computed */
      else count = strtoull(rest.at, NULL, 10);
    }
  }
  if (bytes == 0 || count > (1u << 20) / bytes || alignment > 64 || i->block != 0)
    return lanes_refuse("a private array was not understood: %.*s", LANES_SPAN(i->text));
  if (alignment < 16) alignment = 16;
  v->bytes = (uint32_t)((bytes * count + alignment - 1) / alignment * alignment);
  return MPS_STATUS_OK;
}

/* Functions of ours may be called, and nothing else: an address could lead to them by ways that are not seen. */
static mps_status check_names(const lanes_instruction *i) {
  static const char *const names[] = {"@mps_collective_", "@mps_threads_", "@mps_group_"};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    size_t at = lanes_find(i->text, names[n]), next = at < i->text.length ? at + 1 : at;
    bool again = next + lanes_find(lanes_behind(i->text, next), names[n]) < i->text.length;
    if (at < i->text.length && (again || (i->kind != LANES_COLLECTIVE && i->kind != LANES_ROUND)))
      return lanes_refuse("a use of %.*s: %.*s", LANES_SPAN(first_word(lanes_behind(i->text, at))), LANES_SPAN(i->text));
  }
  return MPS_STATUS_OK;
}

static mps_status read_instruction(lanes_function *f, lanes_span line) {
  lanes_instruction i = {.text = line, .result = LANES_NONE, .site = LANES_NONE, .block = (uint32_t)f->blocks.count - 1};
  lanes_span name = {0}, type;
  if (line.at[0] == '%') {
    size_t length = read_name(lanes_behind(line, 1), &name);
    if (!lanes_starts(lanes_behind(line, 1 + length), " = ")) return lanes_refuse("not understood: %.*s", LANES_SPAN(line));
    i.text = lanes_behind(line, length + 4);
  }
  cut_metadata(&i);
  lanes_span opcode = first_word(i.text);
  if (!find_kind(opcode, &i.kind)) return lanes_refuse("an unknown instruction '%.*s'", LANES_SPAN(opcode));
  if (i.kind == LANES_CALL && is_dropped(i.text)) return MPS_STATUS_OK;
  if (i.kind == LANES_RETURN && !lanes_is(i.text, "ret void")) return lanes_refuse("not understood: %.*s", LANES_SPAN(i.text));
  if (name.at || i.kind == LANES_CALL) {
    if (!lanes_result_type(f, &i, opcode, &type)) return lanes_refuse("a type was not understood: %.*s", LANES_SPAN(i.text));
    if (i.kind == LANES_CALL) MPS_TRY(read_call(f, &i, type));
  }
  MPS_TRY(check_names(&i));
  if (i.kind == LANES_LOAD) i.plain = !lanes_starts(i.text, "load volatile ") && !lanes_starts(i.text, "load atomic ");
  if (name.at) {
    MPS_TRY(define_value(f, name, type, (uint32_t)f->instructions.count, &i.result));
    if (i.kind == LANES_ALLOCA) MPS_TRY(read_private_array(f, &i, &f->values.items[i.result]));
    if (i.kind == LANES_COLLECTIVE) f->sites[i.site].result = i.result;
  }
  MPS_TRY(MPS_ARRAY_RESERVE(&f->instructions, 1));
  MPS_ARRAY_PUSH(&f->instructions, i);
  f->blocks.items[i.block].count++;
  return MPS_STATUS_OK;
}

/* ---- the body ---- */
/* Takes the next line off, and those that belong to it: a switch has its cases on lines of their own. */
static lanes_span take_line(lanes_span *rest) {
  size_t end = lanes_find(*rest, "\n");
  lanes_span line = {rest->at, end};
  if (trimmed(line).length && line.at[end - 1] == '[') {
    end = lanes_find(*rest, "\n  ]");
    end += end < rest->length ? lanes_find(lanes_behind(*rest, end + 1), "\n") + 1 : 0;
    line.length = end;
  }
  *rest = lanes_behind(*rest, end < rest->length ? end + 1 : end);
  return line;
}

/* "12:   ; preds = ..." */
static bool read_label(lanes_span line, lanes_span *name) {
  if (line.at[0] == ' ' || line.at[0] == '\t') return false;
  size_t length = read_name(line, name);
  return length && length < line.length && line.at[length] == ':';
}

static bool ends_block(const lanes_instruction *i) { return i->kind >= LANES_BRANCH; }

static mps_status read_body(lanes_function *f) {
  lanes_span rest = lanes_behind(f->definition->whole, f->definition->head.length);
  bool open = false;
  while (rest.length) {
    lanes_span line = take_line(&rest), bare = trimmed(line), name;
    if (bare.length == 0 || bare.at[0] == ';' || bare.at[0] == '#') continue;
    if (line.at[0] == '}') break;
    if (read_label(line, &name)) {
      if (open) return lanes_refuse("a block has no end before %.*s", LANES_SPAN(name));
      MPS_TRY(define_block(f, name));
      open = true;
      continue;
    }
    if (!open && f->blocks.count) return lanes_refuse("an instruction behind a block's end: %.*s", LANES_SPAN(bare));
    if (!open) { /* the first block has a number only, behind those of nameless arguments */
      uint32_t number = 0;
      for (size_t v = 0; v < 2; v++) number += f->values.items[v].name.at[0] >= '0' && f->values.items[v].name.at[0] <= '9';
      static const char *const numbers[] = {"0", "1", "2"};
      MPS_TRY(define_block(f, (lanes_span){numbers[number], 1}));
      open = true;
    }
    size_t before = f->instructions.count;
    MPS_TRY(read_instruction(f, bare));
    if (f->instructions.count > before && ends_block(&f->instructions.items[before])) open = false;
  }
  return open || f->blocks.count == 0 ? lanes_refuse("@%.*s does not end", LANES_SPAN(f->definition->name)) : MPS_STATUS_OK;
}

/* ---- references ---- */
static mps_status add_reference(lanes_function *f, lanes_instruction *i, size_t at, size_t length, lanes_span name) {
  lanes_span whole = {i->text.at + at, length + 1};
  const lanes_reference *found = mps_map_get(&f->names, name.at, name.length);
  if (mps_map_get(&f->module->types, whole.at, whole.length))
    return found ? lanes_refuse("%.*s is a type and a value", LANES_SPAN(whole)) : MPS_STATUS_OK;
  if (!found) return lanes_refuse("%.*s is not defined", LANES_SPAN(whole));
  MPS_TRY(MPS_ARRAY_RESERVE(&f->references, 1));
  lanes_reference r = {.begin = (uint32_t)at, .end = (uint32_t)(at + length + 1), .index = found->index, .is_block = found->is_block};
  MPS_ARRAY_PUSH(&f->references, r);
  i->reference_count++;
  return MPS_STATUS_OK;
}

static mps_status resolve(lanes_function *f, lanes_instruction *i) {
  i->first_reference = (uint32_t)f->references.count;
  for (size_t at = 0; at < i->text.length; at++) {
    if (i->text.at[at] == '"') { /* a string, or a quoted name behind @ */
      do at++;
      while (at < i->text.length && i->text.at[at] != '"');
      continue;
    }
    if (i->text.at[at] != '%') continue;
    lanes_span name;
    size_t length = read_name(lanes_behind(i->text, at + 1), &name);
    if (length == 0) return lanes_refuse("not understood: %.*s", LANES_SPAN(i->text));
    MPS_TRY(add_reference(f, i, at, length, name));
    at += length;
  }
  return MPS_STATUS_OK;
}

/* "phi float [ %a, %block ], [ 1.0, %other ]" at a block's beginning, and nothing else. */
static mps_status check_phi(const lanes_function *f, const lanes_instruction *i) {
  const lanes_reference *references = &f->references.items[i->first_reference];
  const lanes_instruction *first = &f->instructions.items[f->blocks.items[i->block].first];
  uint32_t labels = 0, items = 0;
  bool fits = i->result != LANES_NONE && (i == first || i[-1].kind == LANES_PHI);
  for (uint32_t r = 0; r < i->reference_count; r++) labels += references[r].is_block;
  lanes_span type = fits ? f->values.items[i->result].type : i->text, list = {0}, item, inside, value, label, more, name;
  if (type.at >= i->text.at && type.at <= i->text.at + i->text.length)
    list = lanes_behind(i->text, (size_t)(type.at - i->text.at) + type.length);
  for (; fits && next_item(&list, &item); items++) {
    fits = item.length && item.at[0] == '[' && bracketed(item, &inside) && inside.length + 2 == item.length && next_item(&inside, &value) &&
           next_item(&inside, &label) && !next_item(&inside, &more) && label.length && label.at[0] == '%' && value.length;
    if (!fits) break;
    fits = read_name(lanes_behind(label, 1), &name) + 1 == label.length;
    const lanes_reference *found = mps_map_get(&f->names, name.at, name.length);
    fits &= found && found->is_block;
  }
  return fits && items == labels ? MPS_STATUS_OK : lanes_refuse("a phi was not understood: %.*s", LANES_SPAN(i->text));
}

static mps_status resolve_operands(lanes_function *f) {
  for (uint32_t s = 1; s < f->site_count; s++)
    for (uint32_t o = 0; o < f->sites[s].operand_count; o++) {
      lanes_operand *operand = &f->sites[s].operands[o];
      lanes_span name;
      if (operand->text.at[0] != '%') continue;
      read_name(lanes_behind(operand->text, 1), &name);
      const lanes_reference *found = mps_map_get(&f->names, name.at, name.length);
      if (!found || found->is_block) return lanes_refuse("%.*s is not defined", LANES_SPAN(operand->text));
      operand->value = found->index;
    }
  return MPS_STATUS_OK;
}

mps_status lanes_function_read(lanes_function *f, lanes_module *module, const lanes_definition *definition) {
  *f = (lanes_function){.module = module, .definition = definition, .site_count = 1};
  f->sites = lanes_allocate(module, sizeof *f->sites);
  if (!f->sites) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a function");
  f->sites[0] = (lanes_site){.instruction = LANES_NONE, .result = LANES_NONE};
  f->number = (uint32_t)strtoul(definition->name.at + strlen("mps_threads_"), NULL, 10);
  MPS_TRY(read_head(f));
  MPS_TRY(read_body(f));
  for (size_t i = 0; i < f->instructions.count; i++) {
    MPS_TRY(resolve(f, &f->instructions.items[i]));
    if (f->instructions.items[i].kind == LANES_PHI) MPS_TRY(check_phi(f, &f->instructions.items[i]));
  }
  return resolve_operands(f);
}

void lanes_function_fini(lanes_function *f) {
  MPS_ARRAY_FINI(&f->values);
  MPS_ARRAY_FINI(&f->blocks);
  MPS_ARRAY_FINI(&f->instructions);
  MPS_ARRAY_FINI(&f->references);
  MPS_ARRAY_FINI(&f->segments);
  MPS_ARRAY_FINI(&f->successors);
  MPS_ARRAY_FINI(&f->loops);
  mps_map_fini(&f->names, NULL);
}
