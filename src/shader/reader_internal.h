/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reader_internal: what the reader's files share. Errors are sticky: the first one stays in reader.status and ends the work.
 */
#ifndef OPENMPS_SHADER_READER_INTERNAL_H
#define OPENMPS_SHADER_READER_INTERNAL_H

#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "shader/reader.h"

/* Texts around and instead of one token; NULL = none, as it was. */
typedef struct mps_token_edit {
  const char *before, *text, *after;
  bool dropped; /* with a whole definition: pragmas in it go, too */
} mps_token_edit;

/* What a parameter of a kernel is. Names are those of the role templates in host_launch.h. */
typedef struct kernel_parameter {
  const char *role;  /* "buffer", "grid_position", ...; NULL: buffer, threadgroup memory, texture or sampler without an index */
  const char *index; /* text of the index; NULL: none written */
  const char *condition; /* text in [[function_constant(...)]]: it is there if that is true; NULL: always */
  uint32_t first_token, end_token;
  uint32_t attribute; /* token that names the index's kind */
  uint32_t number;    /* the index; MPS_READER_NO_INDEX: not known here */
  bool pointer, constant, threadgroup;
  bool texture, sampler; /* by the type's name */
} kernel_parameter;

typedef MPS_ARRAY(kernel_parameter) parameter_list;

/* A kernel template waiting for instantiations. */
typedef struct kernel_template {
  uint32_t name_token;
  uint32_t declaration; /* index in reader.declarations */
  const char *max_threads;
  bool shared; /* mps_shared_<declaration> is behind it */
  parameter_list parameters;
} kernel_template;

/* A declaration at namespace scope: [begin, end), `body` is its brace or 0. */
typedef struct declaration {
  uint32_t begin, head, body, end;
  uint32_t name;         /* token, 0 = none */
  uint32_t parameters;   /* the function's '(' or 0 */
  uint32_t scope;        /* the namespace's '{' + 1, 0 = none */
  bool function, is_kernel, is_template, instantiation, specialization;
} declaration;

/* A function constant's declaration; reader.constants has its name and index at the same place. */
typedef struct constant_place {
  uint32_t name, group; /* tokens: the name, and the '[' of its attributes */
  const mps_function_constant *value; /* NULL: it has none */
  bool asked; /* is_function_constant_defined(it) is somewhere in the source */
} constant_place;

enum { REACH_BARRIER = 1, REACH_SIMDGROUP = 2, REACH_THREADGROUP = 4 };

/* A kernel that is told to the host. */
typedef struct exported_kernel {
  const char *name;
  uint32_t token;
  uint32_t scope; /* of a kernel that has its own name; 0 = one of the whole source, as each host_name is */
} exported_kernel;

/* What a name may stand for, over all declarations of that name. */
typedef struct name_node {
  uint32_t flags; /* REACH_* */
  bool visited;   /* by mps_reader_require_constants */
  MPS_ARRAY(uint32_t) declarations;
} name_node;

typedef struct reader {
  mps_token_list list;
  const mps_reader_options *options;
  mps_token_edit *edits;
  uint32_t *partner; /* of brackets; the token itself for others */
  mps_status status;
  MPS_ARRAY(char *) texts; /* everything that text() made */
  MPS_ARRAY(declaration) declarations;
  MPS_ARRAY(kernel_template) templates;
  MPS_ARRAY(mps_reader_kernel) kernels;
  MPS_ARRAY(mps_reader_constant) constants;
  MPS_ARRAY(constant_place) constant_places;
  MPS_ARRAY(exported_kernel) exported;
  MPS_ARRAY(name_node) nodes;
  mps_map names; /* name -> index in nodes + 1 */
  uint32_t loop_count; /* loops in which threads of a simdgroup meet */
} reader;

/* ---- reader.c ---- */
/* A formatted text that lives as long as the reader; "" when out of memory. */
const char *mps_reader_text(reader *r, const char *format, ...) MPS_PRINTF(2, 3);
/* Remembers the first error, at a token. */
void mps_reader_fail(reader *r, uint32_t token, const char *format, ...) MPS_PRINTF(3, 4);
/* The rewritten text of tokens [begin, end), on one line. */
const char *mps_reader_render(reader *r, uint32_t begin, uint32_t end);
void mps_reader_blank(reader *r, uint32_t begin, uint32_t end);
/* Adds to what stands behind a token. */
void mps_reader_append(reader *r, uint32_t token, const char *text);
/* The '>' that closes the '<' at `open`, or `open` when there is none before `end`. */
uint32_t mps_reader_close_angle(const reader *r, uint32_t open, uint32_t end);

static inline bool token_is(const reader *r, uint32_t index, const char *word) { return mps_token_is(&r->list, index, word); }
static inline char token_first(const reader *r, uint32_t index) { return index < r->list.count ? r->list.tokens[index].first : '\0'; }
/* One-character punctuation. */
static inline bool token_punct(const reader *r, uint32_t index, char c) {
  return index < r->list.count && r->list.tokens[index].first == c && r->list.tokens[index].length == 1;
}
static inline bool token_word(const reader *r, uint32_t index) {
  return index < r->list.count && r->list.tokens[index].kind == MPS_TOKEN_IDENTIFIER;
}
/* True if both are written alike. */
static inline bool token_same(const reader *r, uint32_t a, uint32_t b) {
  const mps_token *first = &r->list.tokens[a], *second = &r->list.tokens[b];
  return first->length == second->length && memcmp(r->list.text + first->start, r->list.text + second->start, first->length) == 0;
}
static inline bool token_starts(const reader *r, uint32_t index, const char *text) {
  return index < r->list.count && r->list.tokens[index].length >= strlen(text) &&
         memcmp(r->list.text + r->list.tokens[index].start, text, strlen(text)) == 0;
}
static inline bool token_attribute(const reader *r, uint32_t index) { return token_punct(r, index, '[') && token_punct(r, index + 1, '['); }

/* ---- reader_declaration.c: finds declarations, names them, and hands kernels on ---- */
void mps_reader_walk(reader *r);
/* The declaration that begins at `begin`. */
declaration mps_reader_scan(reader *r, uint32_t begin, uint32_t end);
/* Where to go on if a namespace or linkage block opens at `i`, else 0. */
uint32_t mps_reader_enter_block(const reader *r, uint32_t i, uint32_t end);
/* True of a struct, class or union. */
bool mps_reader_is_class(const reader *r, const declaration *d);

/* ---- reader_overload.c: definitions that differ in address spaces alone ---- */
void mps_reader_overloads(reader *r);

/* ---- reader_kernel.c: attributes, parameters, entries ---- */
void mps_reader_kernel_definition(reader *r, uint32_t declaration_index);
/* Attributes of anything else: function constants get their values, Metal's own are removed. */
void mps_reader_plain_attributes(reader *r, uint32_t begin, uint32_t end);

/* ---- reader_check.c: what Metal refuses ---- */
void mps_reader_check_words(reader *r);
void mps_reader_check_statics(reader *r, const declaration *d);
/* A kernel's definition: its result, indices and address spaces. */
void mps_reader_check_kernel(reader *r, const declaration *d, const parameter_list *parameters);
/* Remembers a kernel's name, which must be new in its scope. */
void mps_reader_check_name(reader *r, uint32_t token, const char *host_name, uint32_t scope);

/* ---- reader_constant.c: function constants ---- */
/* Finds them all, and gives them the values of options->special. */
void mps_reader_find_constants(reader *r);
/* The initializer of the constant whose attributes open at `group`; NULL if it declares none. */
const char *mps_reader_constant_text(reader *r, uint32_t group);
/* The token is the word is_function_constant_defined: true if the constant asked for has a value. */
bool mps_reader_constant_defined(const reader *r, uint32_t index);
/* Fails where tokens [begin, end), and all that they may come to, name a constant that needs a value and has none. */
void mps_reader_require_constants(reader *r, uint32_t begin, uint32_t end);
/* Where the type begins that `using word = type;` or `typedef type word;` gives the word; 0: nowhere. */
uint32_t mps_reader_find_alias(const reader *r, uint32_t word);
/* The value of whole numbers with + - * and parentheses; false if there is anything else. */
bool mps_reader_number(const reader *r, uint32_t begin, uint32_t end, uint32_t *out);

/* ---- reader_reach.c: which kernels come to a barrier, a simdgroup function or threadgroup memory ---- */
void mps_reader_reach_build(reader *r);
/* REACH_* over every name in tokens [begin, end). */
uint32_t mps_reader_reach(reader *r, uint32_t begin, uint32_t end);
/* All declarations of the name that the token is; NULL when there is none outside of the standard library. */
name_node *mps_reader_find_node(const reader *r, uint32_t token);
void mps_reader_reach_free(reader *r);

/* ---- reader_template.c ---- */
/* The template of a kernel that the name at `name`, with arguments up to `finish`, means; NULL: none was defined so far. */
const kernel_template *mps_reader_find_template(reader *r, uint32_t name, uint32_t finish);

/* ---- reader_shared.c: threadgroup variables ---- */
/* The text of a function mps_shared_<number> that tells the bytes of the kernel's threadgroup variables; NULL: it has none that can be counted. */
const char *mps_reader_shared(reader *r, const declaration *d, uint32_t number);

/* ---- reader_component.c: operators that assign to a vector's component ---- */
void mps_reader_components(reader *r, const declaration *d);

/* ---- reader_loop.c: loops in which threads of a simdgroup meet ---- */
void mps_reader_mark_loops(reader *r, const declaration *d);

#endif
