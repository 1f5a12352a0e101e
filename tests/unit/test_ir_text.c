/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_ir_text: names, brackets, types and lines of LLVM IR, those that do not end among them. Each text is read twice: alone in memory
 * of its length, where the address sanitizer sees who looks behind it, and in front of what would end whatever it leaves open.
 */
#include <stdlib.h>

#include "shader/ir_text.h"
#include "test.h"

#define MAX_TEXT 400

static const char tail[] = "\" ) ] } > 9, addrspace(1), i32 %x\n";

/* Its memory lasts until the next call; `followed`: the tail stands behind it. */
static ir_span span_of(const char *text, bool followed) {
  static char *memory;
  size_t length = strlen(text);
  free(memory);
  memory = malloc(length + (followed ? sizeof tail : length == 0));
  if (!memory) abort();
  memcpy(memory, text, length);
  if (followed) memcpy(memory + length, tail, sizeof tail);
  return (ir_span){memory, length};
}

/* What a span reads, as a string; lasts until the next call. */
static const char *string(ir_span span) {
  static char text[MAX_TEXT];
  if (span.length >= sizeof text) abort();
  if (span.length) memcpy(text, span.at, span.length);
  text[span.length] = 0;
  return text;
}

static void check_length(int line, size_t (*length_of)(ir_span), const char *text, size_t expected) {
  for (int followed = 0; followed < 2; followed++) {
    size_t actual = length_of(span_of(text, followed));
    if (actual == expected) continue;
    test_failures++;
    fprintf(stderr, "%s:%d: '%s'%s: length %zu, expected %zu\n", __FILE__, line, text, followed ? " and more" : "", actual, expected);
  }
}
#define CHECK_LENGTH(length_of, text, expected) check_length(__LINE__, length_of, text, expected)

/* ---- pieces ---- */
static void spans(void) {
  ir_span text = span_of("store i32 5", true);
  CHECK(ir_starts(text, "store ") && ir_starts(text, "") && !ir_starts(text, "store i32 5\""));
  CHECK(ir_is(text, "store i32 5") && !ir_is(text, "store") && !ir_is(text, "store i32 5\""));
  CHECK_INT(ir_find(text, "i32"), 6);
  CHECK_INT(ir_find(text, "5\""), text.length); /* half of it lies behind the span */
  CHECK_STRING(string(ir_behind(text, 6)), "i32 5");
  CHECK_INT(ir_behind(text, 100).length, 0);
  CHECK_STRING(string(ir_trimmed(span_of(" \t a b \r\n", false))), "a b");
  CHECK_INT(ir_trimmed(span_of(" \n ", true)).length, 0);
  CHECK_STRING(string(ir_behind_blanks(span_of("  \n", true))), "\n");
}

static void empty_spans(void) {
  ir_span none = {0}, line, item, name;
  uint64_t number = 1;
  uint32_t bits;
  CHECK(!ir_starts(none, "x") && ir_find(none, "x") == 0 && ir_trimmed(none).length == 0 && ir_bare_line(none).length == 0);
  CHECK(!ir_next_line(&none, &line) && !ir_next_item(&none, &item) && !ir_bracketed(none, &item) && ir_behind_comma(none).length == 0);
  CHECK(ir_number(none, &number) == 0 && number == 0);
  CHECK(ir_name_length(none, &name) == 0 && ir_instruction(none, &name).length == 0 && !name.at);
  CHECK(!ir_type_starts(none) && !ir_scalar_bits(none, &bits) && ir_type_bits(none) == 0 && !ir_sequence(none, &number, &item));
  CHECK_LENGTH(ir_item_length, "", 0);
  CHECK_LENGTH(ir_brackets_length, "", 0);
  CHECK_LENGTH(ir_type_length, "", 0);
  CHECK_LENGTH(ir_word_length, "", 0);
}

static void lines(void) {
  ir_span rest = span_of("a\r\n\nb", true), line;
  CHECK(ir_next_line(&rest, &line));
  CHECK_STRING(string(line), "a\r\n");
  CHECK_STRING(string(ir_bare_line(line)), "a");
  CHECK(ir_next_line(&rest, &line));
  CHECK_STRING(string(line), "\n");
  CHECK_INT(ir_bare_line(line).length, 0);
  CHECK(ir_next_line(&rest, &line));
  CHECK_STRING(string(line), "b"); /* the end of its line lies behind the span */
  CHECK(!ir_next_line(&rest, &line));
}

static void grows(void) {
  ir_text text = {0};
  ir_put_span(&text, (ir_span){0});
  CHECK(!text.at && !text.failed);
  size_t expected = 0;
  for (int i = 0; i < 2000; i++) {
    ir_put(&text, "%d,", i % 10);
    ir_put_span(&text, span_of("%d", true));
    expected += 4;
  }
  CHECK(!text.failed);
  CHECK_INT(text.length, expected);
  CHECK_INT(strlen(text.at), expected);
  CHECK_STRING(string((ir_span){text.at, 12}), "0,%d1,%d2,%d");
  static char much[20000];
  memset(much, 'x', sizeof much - 1);
  ir_put(&text, "<%s>", much); /* more than there is room for */
  CHECK_INT(text.length, expected + sizeof much + 1);
  CHECK(text.at[text.length - 1] == '>' && text.at[text.length] == 0);
  ir_text_fini(&text);
  CHECK(!text.at && text.length == 0);
}

/* ---- words ---- */
static size_t name_length(ir_span text) {
  ir_span name;
  return ir_name_length(text, &name);
}

static void names(void) {
  CHECK_LENGTH(name_length, "struct.a-b$c_9, ptr", 14);
  CHECK_LENGTH(name_length, "\"a, (b]\" = ", 8);
  CHECK_LENGTH(name_length, "\"\"", 2);
  CHECK_LENGTH(name_length, "\"a, b", 0);
  CHECK_LENGTH(name_length, "\"", 0);
  CHECK_LENGTH(name_length, "(x)", 0);
  ir_span name;
  ir_name_length(span_of("\"a, (b]\" = ", true), &name);
  CHECK_STRING(string(name), "a, (b]");
  CHECK_LENGTH(ir_string_length, "\"a, b\" c\"", 6);
  CHECK_LENGTH(ir_string_length, "\"a, b", 5);
  CHECK_LENGTH(ir_string_length, "\"", 1);
}

static void numbers(void) {
  uint64_t number;
  CHECK_INT(ir_number(span_of("120 x", true), &number), 3);
  CHECK_INT(number, 120);
  CHECK_INT(ir_number(span_of("7", false), &number), 1);
  CHECK_INT(number, 7);
  CHECK_INT(ir_number(span_of("-7", true), &number), 0);
  CHECK_INT(number, 0);
  CHECK_INT(ir_number(span_of("18446744073709551615", true), &number), 20);
  CHECK(number == UINT64_MAX);
  CHECK_INT(ir_number(span_of("99999999999999999999999", false), &number), 23);
  CHECK(number == UINT64_MAX);
}

static void instructions(void) {
  ir_span result;
  CHECK_STRING(string(ir_instruction(span_of("  %5 = load i32, ptr %\"a = b\", align 4\n", true), &result)), "load i32, ptr %\"a = b\", align 4");
  CHECK_STRING(string(result), "5");
  CHECK_STRING(string(ir_instruction(span_of("  %\"a = b\" = add i32 1, 2", true), &result)), "add i32 1, 2");
  CHECK_STRING(string(result), "a = b");
  CHECK_STRING(string(ir_instruction(span_of("  ret void", false), &result)), "ret void");
  CHECK(!result.at);
  CHECK_STRING(string(ir_instruction(span_of("  %\"a = add", false), &result)), "%\"a = add");
  CHECK(!result.at);
  CHECK_STRING(string(ir_instruction(span_of("%", true), &result)), "%");
  CHECK(!result.at);
}

/* ---- brackets ---- */
static void items(void) {
  CHECK_LENGTH(ir_item_length, "ptr %x, align 4", 6);
  CHECK_LENGTH(ir_item_length, "i32 1)", 5);
  CHECK_LENGTH(ir_item_length, "{ i32, [4 x <2 x float>] } %x, i32 0", 29);
  CHECK_LENGTH(ir_item_length, "ptr getelementptr (i8, ptr @\"x),(\", i64 4), i64", 42);
  CHECK_LENGTH(ir_item_length, "i32 1", 5);
  CHECK_LENGTH(ir_item_length, "(i32 1, 2", 9);
  CHECK_LENGTH(ir_item_length, "%\"a, b", 6);
  ir_span list = span_of(" i32 1, %\"a, b\" , { i8, i8 } zeroinitializer", true), item;
  CHECK(ir_next_item(&list, &item));
  CHECK_STRING(string(item), "i32 1");
  CHECK(ir_next_item(&list, &item));
  CHECK_STRING(string(item), "%\"a, b\"");
  CHECK(ir_next_item(&list, &item));
  CHECK_STRING(string(item), "{ i8, i8 } zeroinitializer");
  CHECK(!ir_next_item(&list, &item));
  list = span_of("a) b, c", true); /* closes what it did not open: one item */
  CHECK(ir_next_item(&list, &item));
  CHECK_STRING(string(item), "a) b, c");
  CHECK(!ir_next_item(&list, &item));
}

static void brackets(void) {
  CHECK_LENGTH(ir_brackets_length, "(ptr %a, i32 (2)) #1", 17);
  CHECK_LENGTH(ir_brackets_length, "()", 2);
  CHECK_LENGTH(ir_brackets_length, "[\"]\", \"[\"]", 10);
  CHECK_LENGTH(ir_brackets_length, "(ptr %a", 0);
  CHECK_LENGTH(ir_brackets_length, "(\"a)", 0);
  CHECK_LENGTH(ir_brackets_length, "(", 0);
  CHECK_LENGTH(ir_brackets_length, "((((((((", 0);
  CHECK_LENGTH(ir_brackets_length, "x(y)", 0);
  CHECK_LENGTH(ir_brackets_length, ")", 0);
  ir_span inside = {0};
  CHECK(ir_bracketed(span_of("(ptr %\"a)\", i32) #1", true), &inside));
  CHECK_STRING(string(inside), "ptr %\"a)\", i32");
  CHECK(!ir_bracketed(span_of("(ptr %\"a)", true), &inside));
  CHECK_STRING(string(ir_behind_comma(span_of("[2 x { i8, i8 }] %x, 1, 0", true))), " 1, 0");
  CHECK_INT(ir_behind_comma(span_of("{ i8, i8 } %x", true)).length, 0);
  CHECK_INT(ir_behind_comma(span_of("i8), 1", true)).length, 0);
}

/* ---- types ---- */
static void lengths_of_types(void) {
  CHECK_LENGTH(ir_type_length, "i32 %x", 3);
  CHECK_LENGTH(ir_type_length, "ptr", 3);
  CHECK_LENGTH(ir_type_length, "ptr addrspace(3) %x", 16);
  CHECK_LENGTH(ir_type_length, "ptr addrspace(3", 0);
  CHECK_LENGTH(ir_type_length, "ptr addrspace", 3);
  CHECK_LENGTH(ir_type_length, "%struct.a %x", 9);
  CHECK_LENGTH(ir_type_length, "%\"struct.metal::vec<float, 3>\" %x", 30);
  CHECK_LENGTH(ir_type_length, "%\"struct.a", 0);
  CHECK_LENGTH(ir_type_length, "%", 0);
  CHECK_LENGTH(ir_type_length, "{ i32, [4 x <{ i8, %\"a }\" }>], <2 x half> } %x", 43);
  CHECK_LENGTH(ir_type_length, "[4 x { i32, i8 }", 0);
  CHECK_LENGTH(ir_type_length, "<vscale x 4 x float> %x", 20);
  CHECK_LENGTH(ir_type_length, "noundef i32", 0);
  CHECK_LENGTH(ir_type_length, "i", 0);
  CHECK_LENGTH(ir_type_length, "i0", 0);
  CHECK_LENGTH(ir_type_length, "i1234567", 0);
  CHECK_LENGTH(ir_type_length, "floats", 0);
}

static void sizes_of_types(void) {
  static const struct {
    const char *type;
    unsigned bits;
  } types[] = {{"i1", 1}, {"i24", 24}, {"half", 16}, {"bfloat", 16}, {"ptr", 64}, {"<3 x float>", 96}, {"<8 x i1>", 8}, {"<2 x ptr>", 128},
               {"[3 x float]", 0}, {"<vscale x 4 x i8>", 0}, {"<{ i8, i32 }>", 0}, {"%struct.a", 0}, {"void", 0}, {"<3 x float", 0}, {"<4 x ", 0}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    for (int followed = 0; followed < 2; followed++) {
      if (ir_type_bits(span_of(types[i].type, followed)) == types[i].bits) continue;
      test_failures++;
      fprintf(stderr, "%s has not %u bits\n", types[i].type, types[i].bits);
    }
  uint32_t bits = 1;
  CHECK(ir_scalar_bits(span_of("void", true), &bits) && bits == 0);
  CHECK(!ir_scalar_bits(span_of("<2 x i8>", true), &bits));
}

static void sequences(void) {
  uint64_t count;
  ir_span element;
  CHECK(ir_sequence(span_of("[12 x { i8, [2 x i16] }]", true), &count, &element));
  CHECK_INT(count, 12);
  CHECK_STRING(string(element), "{ i8, [2 x i16] }");
  CHECK(ir_sequence(span_of("[0 x i8]", true), &count, &element) && count == 0);
  static const char *const none[] = {"[4 x ", "[4 x ]", "[4 x i8", "[4 x i8] ", "[x i8]", "[4 i8]", "<{ i8 }>", "[16777217 x i8]", "[4 x i8 i8]", "i32"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    for (int followed = 0; followed < 2; followed++) CHECK(!ir_sequence(span_of(none[i], followed), &count, &element));
}

/* ---- all there is ---- */
/* Nothing may look behind the end of a text that is cut off anywhere, or reach further than it. */
static void cut_off_anywhere(void) {
  static const char whole[] = "  %\"a b\" = call { <2 x i8>, [3 x ptr addrspace(3)] } @\"f(\"(ptr %\"x, y\", i32 (1), <{ i8 }> zeroinitializer), !dbg !7\n";
  for (size_t begin = 0; begin < sizeof whole - 1; begin++)
    for (size_t length = 0; begin + length < sizeof whole; length++) {
      char text[sizeof whole] = {0};
      memcpy(text, whole + begin, length);
      ir_span span = span_of(text, false), out = {0}, list = span;
      uint64_t number;
      size_t most = ir_item_length(span);
      const size_t lengths[] = {ir_brackets_length(span), ir_type_length(span), ir_name_length(span, &out), ir_word_length(span),
                                length ? ir_string_length(span) : 0, ir_instruction(span, &out).length, ir_behind_comma(span).length};
      for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) most = lengths[i] > most ? lengths[i] : most;
      CHECK(most <= length);
      CHECK(ir_type_bits(span) <= 64);
      CHECK(!ir_sequence(span, &number, &out) || (out.at > span.at && out.at + out.length < span.at + length));
      size_t count = 0;
      while (ir_next_item(&list, &out)) count++;
      CHECK(count <= 5);
    }
}

int main(void) {
  RUN(spans);
  RUN(empty_spans);
  RUN(lines);
  RUN(grows);
  RUN(names);
  RUN(numbers);
  RUN(instructions);
  RUN(items);
  RUN(brackets);
  RUN(lengths_of_types);
  RUN(sizes_of_types);
  RUN(sequences);
  RUN(cut_off_anywhere);
  return test_end();
}
