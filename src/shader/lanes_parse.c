/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_parse: reads one thread function: blocks, instructions, which values and labels they name. Instructions are a list of known ones;
 * everything else is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shader/lanes_internal.h"

static ir_span first_word(ir_span text) {
  size_t length = 0;
  while (length < text.length && text.at[length] != ' ' && text.at[length] != '(') length++;
  return (ir_span){text.at, length};
}

/* ---- names ---- */
static mps_status define_name(lanes_function *f, ir_span name, uint32_t index, bool is_block) {
  lanes_reference *r = lanes_allocate(f->module, sizeof *r);
  if (!r) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a function's names");
  r->index = index;
  r->is_block = is_block;
  if (mps_map_get(&f->names, name.at, name.length)) return lanes_refuse("two values are called %%%.*s", IR_SPAN(name));
  return mps_map_set(&f->names, name.at, name.length, r);
}

static mps_status define_value(lanes_function *f, ir_span name, ir_span type, uint32_t instruction, uint32_t *out_value) {
  MPS_TRY(MPS_ARRAY_RESERVE(&f->values, 1));
  *out_value = (uint32_t)f->values.count;
  MPS_ARRAY_PUSH(&f->values, ((lanes_value){.name = name, .type = type, .instruction = instruction, .cost = LANES_NONE}));
  return define_name(f, name, *out_value, false);
}

static mps_status define_block(lanes_function *f, ir_span name) {
  MPS_TRY(MPS_ARRAY_RESERVE(&f->blocks, 1));
  uint32_t block = (uint32_t)f->blocks.count;
  MPS_ARRAY_PUSH(&f->blocks, ((lanes_block){.name = name, .first = (uint32_t)f->instructions.count}));
  return define_name(f, name, block, true);
}

/* ---- the head ---- */
static mps_status read_argument(lanes_function *f, ir_span list, const char *type, uint32_t *out_value) {
  ir_span name = {0};
  for (size_t i = list.length; i-- > 0;) {
    if (list.at[i] != '%') continue;
    ir_name_length(ir_behind(list, i + 1), &name);
    break;
  }
  if (!name.length || !ir_starts(list, type) || (list.length > strlen(type) && list.at[strlen(type)] != ' '))
    return lanes_refuse("@%.*s has an argument '%.*s', expected %s", IR_SPAN(f->definition->name), IR_SPAN(list), type);
  return define_value(f, name, (ir_span){type, strlen(type)}, LANES_NONE, out_value);
}

/* The strings of an attribute group: what the processor is. Other attributes speak of the function as it was. */
static mps_status keep_strings(lanes_function *f, ir_span all) {
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
  f->attributes = (ir_span){out, used};
  return MPS_STATUS_OK;
}

static mps_status read_head(lanes_function *f) {
  ir_span head = f->definition->head, arguments, first = {0}, second = {0}, more = {0};
  size_t at = ir_find(head, "@");
  while (at < head.length && head.at[at] != '(') at++;
  if (!ir_bracketed(ir_behind(head, at), &arguments)) return lanes_refuse("@%.*s: its head was not understood", IR_SPAN(f->definition->name));
  if (!ir_find(head, " void @") || ir_find(head, " void @") == head.length)
    return lanes_refuse("@%.*s returns something", IR_SPAN(f->definition->name));
  if (ir_find(head, " personality ") < head.length) return lanes_refuse("@%.*s has exceptions", IR_SPAN(f->definition->name));
  ir_next_item(&arguments, &first);
  ir_next_item(&arguments, &second);
  if (ir_next_item(&arguments, &more)) return lanes_refuse("@%.*s has more than two arguments", IR_SPAN(f->definition->name));
  MPS_TRY(read_argument(f, first, "ptr", &f->context));
  MPS_TRY(read_argument(f, second, "i32", &f->thread));
  ir_span rest = ir_behind(head, at + 2 + (size_t)(arguments.at - head.at - (ptrdiff_t)at - 1));
  size_t group = ir_find(rest, "#");
  if (group == rest.length) return MPS_STATUS_OK;
  ir_span name = first_word(ir_behind(rest, group));
  const ir_span *attributes = mps_map_get(&f->module->attributes, name.at, name.length);
  if (!attributes) return MPS_STATUS_OK;
  if (ir_find(*attributes, "strictfp") < attributes->length)
    return lanes_refuse("@%.*s has strict floating point", IR_SPAN(f->definition->name));
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

static bool find_kind(ir_span opcode, lanes_kind *kind) {
  for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
    if (ir_is(opcode, opcodes[i].name)) return *kind = opcodes[i].kind, true;
  return false;
}

/* Cuts ", !tbaa !9, ..." off the text. */
static void cut_metadata(lanes_instruction *i) {
  ir_span t = i->text;
  for (size_t at = 0; at + 3 < t.length; at++) {
    if (t.at[at] == '"') {
      at += ir_string_length(ir_behind(t, at)) - 1;
    } else if (t.at[at] == ',' && t.at[at + 1] == ' ' && t.at[at + 2] == '!' && t.at[at + 3] >= 'a' && t.at[at + 3] <= 'z') {
      i->metadata = ir_behind(t, at);
      i->text.length = at;
      return;
    }
  }
}

/* Calls that say something of the function as it was, and do nothing. */
static bool is_dropped(ir_span text) {
  static const char *const names[] = {"@llvm.lifetime.", "@llvm.assume(", "@llvm.experimental.noalias.scope.decl(", "@llvm.dbg."};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (ir_find(text, names[i]) < text.length) return true;
  return false;
}

/* The operands of a call where threads meet: "(float noundef %3, i32 1)". */
static mps_status read_operands(lanes_function *f, lanes_site *site, ir_span list) {
  static const char *const words[] = {"noundef", "zeroext", "signext", "nonnull", "inreg", "range(", "nofpclass(", "dereferenceable(", "align "};
  ir_span item;
  site->operands = lanes_allocate(f->module, (list.length / 2 + 1) * sizeof *site->operands);
  if (!site->operands) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for operands");
  while (ir_next_item(&list, &item)) {
    lanes_operand *o = &site->operands[site->operand_count++];
    size_t length = ir_type_length(item);
    o->type = (ir_span){item.at, length};
    o->value = LANES_NONE;
    item = ir_trimmed(ir_behind(item, length));
    for (size_t w = 0; length && w < sizeof words / sizeof *words; w++) {
      if (!ir_starts(item, words[w])) continue;
      size_t skip = strlen(words[w]), inner = ir_find(item, ")");
      if (words[w][skip - 1] == '(') skip = inner == item.length ? inner : inner + 1;
      if (words[w][skip - 1] == ' ') skip += strspn(item.at + skip, "0123456789");
      item = ir_trimmed(ir_behind(item, skip));
      w = SIZE_MAX; /* from the first word again */
    }
    if (ir_starts(item, "@mps_lanes_")) { /* it is there to have that function compiled */
      site->operand_count--;
      continue;
    }
    o->text = item;
    o->bytes = (uint32_t)lanes_type_bytes(f->module, o->type);
    if (o->bytes == 0 || item.length == 0)
      return lanes_refuse("an operand of mps_collective_%.*s was not understood", IR_SPAN(site->name));
  }
  return MPS_STATUS_OK;
}

static const char collective[] = "@mps_collective_";

/* "mps_collective_loop_next(i32 3)": about the loop that is called 3. */
static mps_status read_round(lanes_function *f, lanes_instruction *i, ir_span callee) {
  ir_span word = ir_behind(callee, sizeof collective - 1 + 5), arguments;
  bool known = ir_starts(word, "enter(") || ir_starts(word, "next(") || ir_starts(word, "leave(");
  if (!known || !ir_bracketed(ir_behind(word, ir_find(word, "(")), &arguments)) return lanes_refuse("not understood: %.*s", IR_SPAN(i->text));
  arguments = ir_trimmed(arguments);
  size_t at = arguments.length;
  while (at > 0 && arguments.at[at - 1] >= '0' && arguments.at[at - 1] <= '9') at--;
  if (!ir_starts(arguments, "i32 ") || at == arguments.length || arguments.at[at - 1] != ' ')
    return lanes_refuse("a loop has no constant name: %.*s", IR_SPAN(i->text));
  i->kind = LANES_ROUND;
  i->round = word.at[0];
  uint32_t id = (uint32_t)strtoul(arguments.at + at, NULL, 10);
  for (i->loop = 0; i->loop < f->loops.count && f->loops.items[i->loop].id != id;) i->loop++;
  if (i->loop < f->loops.count) return MPS_STATUS_OK;
  MPS_TRY(MPS_ARRAY_RESERVE(&f->loops, 1));
  MPS_ARRAY_PUSH(&f->loops, ((lanes_loop){.id = id}));
  return MPS_STATUS_OK;
}

static mps_status read_collective(lanes_function *f, lanes_instruction *i, ir_span callee) {
  i->kind = LANES_COLLECTIVE;
  lanes_site *sites = lanes_allocate(f->module, (f->site_count + 1) * sizeof *sites);
  if (!sites) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for %u meetings", f->site_count);
  if (f->site_count) memcpy(sites, f->sites, f->site_count * sizeof *sites);
  f->sites = sites;
  i->site = f->site_count++;
  lanes_site *site = &sites[i->site];
  size_t open = ir_find(callee, "(");
  ir_span arguments;
  *site = (lanes_site){.instruction = (uint32_t)f->instructions.count, .result = LANES_NONE};
  site->name = (ir_span){callee.at + sizeof collective - 1, open - (sizeof collective - 1)};
  site->barrier = ir_is(site->name, "barrier");
  site->exchange = !site->barrier && !ir_is(site->name, "simdgroup_barrier");
  if (!ir_bracketed(ir_behind(callee, open), &arguments))
    return lanes_refuse("a call of mps_collective_%.*s was not understood", IR_SPAN(site->name));
  return site->exchange ? read_operands(f, site, arguments) : MPS_STATUS_OK;
}

/* "call i32 @mps_lane_index()" becomes "and i32 %thread, 31". */
static mps_status read_lane_index(lanes_function *f, lanes_instruction *i) {
  const lanes_value *thread = &f->values.items[f->thread];
  size_t room = thread->name.length + 24;
  char *text = lanes_allocate(f->module, room);
  if (!text) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for an instruction");
  int length = snprintf(text, room, "and i32 %%%.*s, 31", IR_SPAN(thread->name));
  *i = (lanes_instruction){.text = {text, (size_t)length}, .kind = LANES_PURE, .result = LANES_NONE, .site = LANES_NONE, .block = i->block};
  return MPS_STATUS_OK;
}

static mps_status read_call(lanes_function *f, lanes_instruction *i, ir_span type) {
  static const char *const pure[] = {"@llvm.umin.", "@llvm.umax.", "@llvm.smin.", "@llvm.smax.", "@llvm.abs.", "@llvm.fabs.", "@llvm.fshl.",
                                     "@llvm.fshr.", "@llvm.ctpop.", "@llvm.threadlocal.address"};
  static const char *const refused[] = {"@llvm.stacksave", "@llvm.stackrestore", "@llvm.eh.", "@llvm.va_", "@llvm.coro.", "@llvm.localescape",
                                        "@llvm.returnaddress", "@llvm.frameaddress", "@mps_threads_", "@mps_group_"};
  ir_span callee = ir_trimmed(ir_behind(i->text, (size_t)(type.at - i->text.at) + type.length));
  if (ir_find(i->text, "metadata ") < i->text.length || callee.length == 0 || (callee.at[0] != '@' && callee.at[0] != '%'))
    return lanes_refuse("a call was not understood: %.*s", IR_SPAN(i->text));
  for (size_t n = 0; n < sizeof refused / sizeof *refused; n++)
    if (ir_starts(callee, refused[n])) return lanes_refuse("a call of %.*s", IR_SPAN(first_word(callee)));
  if (ir_starts(callee, "@mps_lane_index(")) return read_lane_index(f, i);
  if (ir_starts(callee, "@mps_collective_loop_")) return read_round(f, i, callee);
  if (ir_starts(callee, collective)) return read_collective(f, i, callee);
  for (size_t n = 0; n < sizeof pure / sizeof *pure; n++)
    if (ir_starts(callee, pure[n])) i->kind = LANES_PURE;
  return MPS_STATUS_OK;
}

/* An array that a thread keeps to itself: how large it is. */
static mps_status read_private_array(lanes_function *f, const lanes_instruction *i, lanes_value *v) {
  ir_span list = ir_trimmed(ir_behind(i->text, strlen("alloca"))), item, rest;
  ir_next_item(&list, &item);
  uint64_t bytes = ir_type_length(item) == item.length ? lanes_type_bytes(f->module, item) : 0, count = 1, alignment = 16;
  while (bytes && ir_next_item(&list, &item)) {
    if (ir_starts(item, "align ")) {
      alignment = strtoull(item.at + 6, NULL, 10);
    } else {
      rest = ir_trimmed(ir_behind(item, ir_type_length(item)));
      if (!ir_starts(item, "i") || rest.length == 0 || rest.at[0] < '1' || rest.at[0] > '9') bytes = 0; /* its length is computed */
      else count = strtoull(rest.at, NULL, 10);
    }
  }
  if (bytes == 0 || count > (1u << 20) / bytes || alignment > 64 || i->block != 0)
    return lanes_refuse("a private array was not understood: %.*s", IR_SPAN(i->text));
  if (alignment < 16) alignment = 16;
  v->bytes = (uint32_t)((bytes * count + alignment - 1) / alignment * alignment);
  return MPS_STATUS_OK;
}

/* Functions of ours may be called, and nothing else: an address could lead to them by ways that are not seen. */
static mps_status check_names(const lanes_instruction *i) {
  static const char *const names[] = {"@mps_collective_", "@mps_threads_", "@mps_group_"};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    size_t at = ir_find(i->text, names[n]), next = at < i->text.length ? at + 1 : at;
    bool again = next + ir_find(ir_behind(i->text, next), names[n]) < i->text.length;
    if (at < i->text.length && (again || (i->kind != LANES_COLLECTIVE && i->kind != LANES_ROUND)))
      return lanes_refuse("a use of %.*s: %.*s", IR_SPAN(first_word(ir_behind(i->text, at))), IR_SPAN(i->text));
  }
  return MPS_STATUS_OK;
}

static mps_status read_instruction(lanes_function *f, ir_span line) {
  ir_span name, type;
  lanes_instruction i = {.text = ir_instruction(line, &name), .result = LANES_NONE, .site = LANES_NONE, .block = (uint32_t)f->blocks.count - 1};
  if (ir_starts(i.text, "%")) return lanes_refuse("not understood: %.*s", IR_SPAN(line));
  cut_metadata(&i);
  ir_span opcode = first_word(i.text);
  if (!find_kind(opcode, &i.kind)) return lanes_refuse("an unknown instruction '%.*s'", IR_SPAN(opcode));
  if (i.kind == LANES_CALL && is_dropped(i.text)) return MPS_STATUS_OK;
  if (i.kind == LANES_RETURN && !ir_is(i.text, "ret void")) return lanes_refuse("not understood: %.*s", IR_SPAN(i.text));
  if (name.at || i.kind == LANES_CALL) {
    if (!lanes_result_type(f, &i, opcode, &type)) return lanes_refuse("a type was not understood: %.*s", IR_SPAN(i.text));
    if (i.kind == LANES_CALL) MPS_TRY(read_call(f, &i, type));
  }
  MPS_TRY(check_names(&i));
  if (i.kind == LANES_LOAD) i.plain = !ir_starts(i.text, "load volatile ") && !ir_starts(i.text, "load atomic ");
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
static ir_span take_line(ir_span *rest) {
  size_t end = ir_find(*rest, "\n");
  ir_span line = {rest->at, end};
  if (ir_trimmed(line).length && line.at[end - 1] == '[') {
    end = ir_find(*rest, "\n  ]");
    end += end < rest->length ? ir_find(ir_behind(*rest, end + 1), "\n") + 1 : 0;
    line.length = end;
  }
  *rest = ir_behind(*rest, end < rest->length ? end + 1 : end);
  return line;
}

/* "12:   ; preds = ..." */
static bool read_label(ir_span line, ir_span *name) {
  if (line.at[0] == ' ' || line.at[0] == '\t') return false;
  size_t length = ir_name_length(line, name);
  return length && length < line.length && line.at[length] == ':';
}

static bool ends_block(const lanes_instruction *i) { return i->kind >= LANES_BRANCH; }

static mps_status read_body(lanes_function *f) {
  ir_span rest = ir_behind(f->definition->whole, f->definition->head.length);
  bool open = false;
  while (rest.length) {
    ir_span line = take_line(&rest), bare = ir_trimmed(line), name;
    if (bare.length == 0 || bare.at[0] == ';' || bare.at[0] == '#') continue;
    if (line.at[0] == '}') break;
    if (read_label(line, &name)) {
      if (open) return lanes_refuse("a block has no end before %.*s", IR_SPAN(name));
      MPS_TRY(define_block(f, name));
      open = true;
      continue;
    }
    if (!open && f->blocks.count) return lanes_refuse("an instruction behind a block's end: %.*s", IR_SPAN(bare));
    if (!open) { /* the first block has a number only, behind those of nameless arguments */
      uint32_t number = 0;
      for (size_t v = 0; v < 2; v++) number += f->values.items[v].name.at[0] >= '0' && f->values.items[v].name.at[0] <= '9';
      static const char *const numbers[] = {"0", "1", "2"};
      MPS_TRY(define_block(f, (ir_span){numbers[number], 1}));
      open = true;
    }
    size_t before = f->instructions.count;
    MPS_TRY(read_instruction(f, bare));
    if (f->instructions.count > before && ends_block(&f->instructions.items[before])) open = false;
  }
  return open || f->blocks.count == 0 ? lanes_refuse("@%.*s does not end", IR_SPAN(f->definition->name)) : MPS_STATUS_OK;
}

/* ---- references ---- */
static mps_status add_reference(lanes_function *f, lanes_instruction *i, size_t at, size_t length, ir_span name) {
  ir_span whole = {i->text.at + at, length + 1};
  const lanes_reference *found = mps_map_get(&f->names, name.at, name.length);
  if (mps_map_get(&f->module->types, whole.at, whole.length))
    return found ? lanes_refuse("%.*s is a type and a value", IR_SPAN(whole)) : MPS_STATUS_OK;
  if (!found) return lanes_refuse("%.*s is not defined", IR_SPAN(whole));
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
      at += ir_string_length(ir_behind(i->text, at)) - 1;
      continue;
    }
    if (i->text.at[at] != '%') continue;
    ir_span name;
    size_t length = ir_name_length(ir_behind(i->text, at + 1), &name);
    if (length == 0) return lanes_refuse("not understood: %.*s", IR_SPAN(i->text));
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
  ir_span type = fits ? f->values.items[i->result].type : i->text, list = {0}, item, inside, value, label, more, name;
  if (type.at >= i->text.at && type.at <= i->text.at + i->text.length)
    list = ir_behind(i->text, (size_t)(type.at - i->text.at) + type.length);
  for (; fits && ir_next_item(&list, &item); items++) {
    fits = item.length && item.at[0] == '[' && ir_bracketed(item, &inside) && inside.length + 2 == item.length && ir_next_item(&inside, &value) &&
           ir_next_item(&inside, &label) && !ir_next_item(&inside, &more) && label.length && label.at[0] == '%' && value.length;
    if (!fits) break;
    fits = ir_name_length(ir_behind(label, 1), &name) + 1 == label.length;
    const lanes_reference *found = mps_map_get(&f->names, name.at, name.length);
    fits &= found && found->is_block;
  }
  return fits && items == labels ? MPS_STATUS_OK : lanes_refuse("a phi was not understood: %.*s", IR_SPAN(i->text));
}

static mps_status resolve_operands(lanes_function *f) {
  for (uint32_t s = 1; s < f->site_count; s++)
    for (uint32_t o = 0; o < f->sites[s].operand_count; o++) {
      lanes_operand *operand = &f->sites[s].operands[o];
      ir_span name;
      if (operand->text.at[0] != '%') continue;
      ir_name_length(ir_behind(operand->text, 1), &name);
      const lanes_reference *found = mps_map_get(&f->names, name.at, name.length);
      if (!found || found->is_block) return lanes_refuse("%.*s is not defined", IR_SPAN(operand->text));
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
