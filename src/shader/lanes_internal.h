/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_internal: a thread function as the lane files share it: instructions and blocks (lanes_parse), types (lanes_type), what lies
 * between two meetings (lanes_region), and the text that is written (lanes_write).
 */
#ifndef OPENMPS_SHADER_LANES_INTERNAL_H
#define OPENMPS_SHADER_LANES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/status.h"
#include "shader/ir_text.h"
#include "shader/lanes.h"

#define LANES_NONE UINT32_MAX
#define LANES_WIDTH 32u
#define LANES_HEADER_BYTES 192u /* of a simdgroup's storage: its state, and where each lane waits */
#define LANES_NEXT_OFFSET 64u
#define LANES_MIXED UINT32_MAX /* state of a simdgroup whose lanes wait at different places, or which is not full */

/* ---- a module ---- */
typedef struct lanes_block_of_memory lanes_block_of_memory;

typedef struct lanes_definition {
  ir_span name;  /* without @ */
  ir_span whole; /* from `define` to the closing brace's line, its end included */
  ir_span head;  /* the first line */
} lanes_definition;

typedef struct lanes_module {
  ir_span text;
  mps_map types;   /* "%struct.a" -> ir_span *: its body */
  mps_map attributes; /* "#0" -> ir_span *: what is in its braces */
  MPS_ARRAY(lanes_definition) definitions;
  uint32_t metadata_count; /* numbers from here on are free */
  lanes_block_of_memory *memory;
} lanes_module;

/* Zeroed memory that lives as long as the module; NULL when there is none. */
void *lanes_allocate(lanes_module *module, size_t bytes);
MPS_WARN_UNUSED mps_status lanes_module_read(lanes_module *module, const char *text, size_t length);
void lanes_module_fini(lanes_module *module);
/* Sets the error of what is refused. */
mps_status lanes_refuse(const char *format, ...) MPS_PRINTF(1, 2);

/* ---- types ---- */
/* At least as many bytes as the type takes in memory; 0: not known. */
uint64_t lanes_type_bytes(const lanes_module *module, ir_span type);
/* The type of member `index` of a struct or array; empty: unknown. */
ir_span lanes_type_member(const lanes_module *module, ir_span type, uint32_t index);

/* ---- a function ---- */
typedef enum lanes_kind {
  LANES_OTHER,
  LANES_PURE, /* the same for the same operands, wherever it is computed, and never a fault */
  LANES_LOAD,
  LANES_MEMORY, /* store, atomic */
  LANES_ALLOCA,
  LANES_PHI,
  LANES_CALL,
  LANES_COLLECTIVE,
  LANES_ROUND, /* a call around a loop in which lanes meet */
  LANES_BRANCH,
  LANES_RETURN,
  LANES_UNREACHABLE,
} lanes_kind;

typedef struct lanes_reference {
  uint32_t begin, end; /* in the instruction's text, the % included */
  uint32_t index;      /* of a value or a block */
  bool is_block;
} lanes_reference;

typedef struct lanes_instruction {
  ir_span text; /* behind "%x = ", without metadata */
  ir_span metadata; /* ", !tbaa !9" */
  lanes_kind kind;
  uint32_t result; /* a value, or LANES_NONE */
  uint32_t first_reference, reference_count;
  uint32_t block;
  uint32_t site; /* of a collective */
  uint32_t loop; /* of LANES_ROUND */
  uint32_t rank; /* place in the order in which threads get there, from 1 */
  char round;    /* 'e'nter, 'n'ext, 'l'eave */
  bool plain;    /* a load that is neither volatile nor atomic */
  bool uniform_memory; /* a load from the context */
  bool of_simdgroup;   /* says of the thread only which simdgroup it is in */
} lanes_instruction;

typedef struct lanes_value {
  ir_span name; /* without % and quotes */
  ir_span type; /* empty: unknown */
  uint32_t instruction; /* LANES_NONE: an argument */
  uint32_t cost; /* instructions to compute it anew from arguments; LANES_NONE: cannot be */
  bool crossing; /* kept over a meeting: has a slot */
  bool anew;     /* computed anew in each region that uses it */
  uint32_t bytes;  /* of a slot's element, or of a private array, for one thread */
  uint32_t offset; /* in a simdgroup's storage */
} lanes_value;

typedef struct lanes_block {
  ir_span name;
  uint32_t first, count; /* instructions */
  uint32_t first_segment, segment_count;
} lanes_block;

/* Part of a block: it ends with a meeting or with the block's last instruction. */
typedef struct lanes_segment {
  uint32_t block, first, count;
  uint32_t site; /* LANES_NONE: ends with the block */
  uint32_t first_successor, successor_count; /* within a region: none behind a meeting */
} lanes_segment;

typedef struct lanes_operand {
  ir_span type, text;
  uint32_t value; /* LANES_NONE: a constant */
  uint32_t bytes, offset;
} lanes_operand;

/* A call where threads meet. Number 0 is the function's beginning; then come exchanges, barriers, and pauses: heads of loops that all
 * lanes go round alike, where lanes that run together wait for each other so that the loop over lanes is the inner one. */
typedef struct lanes_site {
  ir_span name; /* what is behind mps_collective_ */
  bool barrier, exchange; /* neither: a barrier of the simdgroup */
  uint32_t instruction;
  uint32_t result; /* a value with a slot, or LANES_NONE */
  uint32_t result_offset;
  lanes_operand *operands;
  uint32_t operand_count;
  uint32_t segment; /* where threads go on */
  uint32_t end;     /* the segment that it ends */
  uint32_t *loops;  /* counted ones that it is in, outermost first */
  uint32_t loop_count;
} lanes_site;

/* A loop in which lanes meet, by the calls that stand around it. How often a lane went round says who is behind and goes first. */
typedef struct lanes_loop {
  uint32_t id;     /* what the calls say */
  uint32_t rank;   /* of its first beginning */
  uint32_t offset; /* of the lanes' counts */
} lanes_loop;

typedef struct lanes_region {
  bool *segments;  /* that belong to it */
  bool *exits;     /* by site; the last is the return */
  uint32_t exit_count, only_exit;
  uint32_t *uniforms; /* values that all lanes have alike when they all come here together */
  uint32_t uniform_count;
  bool *unlike; /* by site and loop: lanes that come there together may have gone round unequally often */
  bool certain; /* lanes that begin together end together, */
  bool one_way; /* and more than that: they go the same way, which any lane tells */
} lanes_region;

typedef struct lanes_function {
  lanes_module *module;
  const lanes_definition *definition;
  uint32_t number;
  ir_span attributes; /* strings of the attribute group */
  uint32_t context, thread; /* values */
  MPS_ARRAY(lanes_value) values;
  MPS_ARRAY(lanes_block) blocks;
  MPS_ARRAY(lanes_instruction) instructions;
  MPS_ARRAY(lanes_reference) references;
  mps_map names; /* -> lanes_reference *: values and blocks */
  MPS_ARRAY(lanes_segment) segments;
  MPS_ARRAY(uint32_t) successors;
  lanes_site *sites;
  uint32_t site_count;     /* the beginning included; the return is number site_count */
  uint32_t exchange_count; /* sites 1 to exchange_count are of a simdgroup, */
  uint32_t barrier_end;    /* those up to this one barriers, the rest pauses */
  lanes_region *regions;   /* by site */
  MPS_ARRAY(lanes_loop) loops;
  uint64_t *live;          /* by segment: bits of values that are needed there */
  uint32_t live_words;
  uint64_t bytes;          /* of a simdgroup's storage */
} lanes_function;

/* Reads the definition; LANES_NONE-terminated names are resolved. NOT_IMPLEMENTED says why it cannot be. */
MPS_WARN_UNUSED mps_status lanes_function_read(lanes_function *function, lanes_module *module, const lanes_definition *definition);
/* Splits it into regions and gives every kept value its place. */
MPS_WARN_UNUSED mps_status lanes_function_split(lanes_function *function);
/* Ranks instructions and finds heads of loops where lanes pause. Segments are made before and after. */
MPS_WARN_UNUSED mps_status lanes_find_pauses(lanes_function *function);
/* Finds in which counted loops each meeting is, and gives the counts their places. */
MPS_WARN_UNUSED mps_status lanes_find_loops(lanes_function *function);
/* Finds what all lanes have alike when they come to a site together. */
MPS_WARN_UNUSED mps_status lanes_find_uniforms(lanes_function *function);
uint32_t lanes_place(lanes_function *function, uint64_t bytes_per_thread);
/* Writes it; *metadata is the first free number. */
MPS_WARN_UNUSED mps_status lanes_function_write(const lanes_function *function, ir_text *out, uint32_t *metadata);
void lanes_function_fini(lanes_function *function);

static inline bool lanes_is_live(const lanes_function *f, uint32_t segment, uint32_t value) {
  return f->live[(size_t)segment * f->live_words + value / 64] >> (value % 64) & 1;
}

/* The type of an instruction's result. False: not understood. */
bool lanes_result_type(lanes_function *function, const lanes_instruction *instruction, ir_span opcode, ir_span *out_type);

#endif
