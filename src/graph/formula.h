/* SPDX-License-Identifier: BSD-3-Clause
 *
 * formula: what the planner knows of a formula, and the rules of dtypes: promotion, computing types, result dtypes.
 *
 * Nothing here touches a device. The table itself is generated from the `functor` rows of src/ops/table.
 */
#ifndef OPENMPS_GRAPH_FORMULA_H
#define OPENMPS_GRAPH_FORMULA_H

#include "driver/program.h"
#include "graph/formulas.h"

/* A source that is read in the formula's own type T; any other value is an mps_compute. */
#define MPS_FORMULA_SAME 255

/* Instructions that convert a register carry this number plus from * 8 + to (mps_compute both); their kernels are `cast_<from>_<to>`. */
#define MPS_FORMULA_CAST 0xff00u

typedef enum mps_formula_rule { MPS_RULE_COMMON, MPS_RULE_FLOAT, MPS_RULE_BOOL, MPS_RULE_FIRST } mps_formula_rule;
typedef enum mps_formula_result { MPS_RESULT_SAME, MPS_RESULT_BOOL, MPS_RESULT_REAL, MPS_RESULT_COMPLEX } mps_formula_result;

typedef struct mps_formula_info {
  const char *name;
  uint8_t source_count;
  uint8_t sources[MPS_PROGRAM_MAX_SOURCES]; /* mps_compute, or MPS_FORMULA_SAME */
  uint8_t result;                           /* mps_formula_result */
  uint8_t rule;                             /* mps_formula_rule */
  uint8_t types;                            /* bit per mps_compute for which kernels exist */
  uint8_t parameter_count;
  uint8_t exact_constants; /* constants are not rounded to the common dtype first (PyTorch multiplies half by a full-precision scalar) */
  float cost;              /* nanoseconds an element on one core */
} mps_formula_info;

extern const mps_formula_info mps_formula_infos[MPS_FORMULA_COUNT];

/* How far a value's dtype counts in promotion. */
typedef enum mps_dtype_category { MPS_CATEGORY_NUMBER, MPS_CATEGORY_SCALAR, MPS_CATEGORY_TENSOR, MPS_CATEGORY_COUNT } mps_dtype_category;

/* torch.promote_types for the dtypes that exist here. u16, u32 and u64 with another integer (PyTorch refuses) give the wider one. */
mps_dtype mps_dtype_promote(mps_dtype a, mps_dtype b);

/* torch.result_type, fed one operand at a time. */
typedef struct mps_dtype_promotion {
  uint8_t dtypes[MPS_CATEGORY_COUNT]; /* MPS_DTYPE_COUNT: nothing seen */
} mps_dtype_promotion;
void mps_promotion_begin(mps_dtype_promotion *promotion);
void mps_promotion_add(mps_dtype_promotion *promotion, mps_dtype dtype, mps_dtype_category category);
mps_dtype mps_promotion_end(const mps_dtype_promotion *promotion); /* F32 when nothing was added */

/* The type that a dtype is computed in, the dtype that a computing type holds without loss, and "f32" and the like. */
mps_compute mps_dtype_compute(mps_dtype dtype);
mps_dtype mps_compute_dtype(mps_compute compute);
const char *mps_compute_name(mps_compute compute);
/* True when every value of `from` is a value of `to`. */
bool mps_dtype_contains(mps_dtype to, mps_dtype from);
/* 'Float', 'Half', ...: PyTorch's names, for error texts. */
const char *mps_dtype_title(mps_dtype dtype);
/* The dtype of a formula's result when it computes in `common`. */
mps_dtype mps_formula_result_dtype(const mps_formula_info *info, mps_dtype common);

/* Rounds `scalar` to `dtype` and writes it as one element of `compute` into 8 bytes (the rest zero). */
uint64_t mps_scalar_element(mps_scalar scalar, mps_dtype dtype, mps_compute compute);

#endif
