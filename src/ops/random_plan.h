/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random_plan: from a distribution and a result to the kernel, its arguments and how many Philox blocks it takes. Pure: seed and offset
 * are the generator's, and filled in when the plan is encoded.
 */
#ifndef OPENMPS_OPS_RANDOM_PLAN_H
#define OPENMPS_OPS_RANDOM_PLAN_H

#include "kernels/random_arguments.h"
#include "openmps/tensor.h"

/* One distribution over one result. */
typedef struct mps_random_call {
  const char *label;
  const char *stem;  /* of the kernel; the dtype that it makes is appended */
  mps_dtype makes;   /* dtype that the kernel writes; converted to out's if it differs */
  int64_t per_block; /* elements of a Philox block */
  mps_random_arguments arguments;
  const mps_tensor *input; /* contiguous, buffer 2; may be NULL */
  const mps_tensor *second_input; /* contiguous, buffer 3; may be NULL */
  const mps_tensor *mask;  /* contiguous, buffer 3, written; may be NULL */
  double cost;             /* nanoseconds an element, where it is not the usual one; else 0 */
} mps_random_call;

typedef struct mps_random_plan {
  const char *stem, *suffix; /* of the kernel */
  mps_random_arguments arguments;
  uint64_t blocks;  /* the generator goes on by */
  uint64_t threads; /* 0: nothing to make */
  bool direct;      /* out is written itself; else a contiguous temporary, which is copied */
  double cost;      /* nanoseconds */
} mps_random_plan;

void mps_random_plan_make(mps_random_plan *plan, const mps_random_call *call, const mps_tensor *out);

/* The largest integer up to which a dtype holds all from 0 on. */
uint64_t mps_random_largest(mps_dtype dtype);
/* [from, to), or [from, the largest] for to == NULL, as base and count of values; a count of 0 means all 64 bits. PyTorch's texts for bounds
 * that `dtype` does not hold. */
MPS_WARN_UNUSED mps_status mps_random_range(int64_t from, const int64_t *to, mps_dtype dtype, int64_t *out_base, uint64_t *out_range);
/* Integers in [base, base + range) for a result of `dtype`. */
mps_random_call mps_random_integers(int64_t base, uint64_t range, mps_dtype dtype);
/* A complex tensor of rank below MPS_MAX_RANK as its parts: one more dimension, of size 2. */
mps_tensor mps_random_parts(const mps_tensor *complex);

/* Four passes: how many numbers of each block go to each bucket, where these begin, the dealing, and the shuffling; the last alone where there is
 * one bucket. */
typedef struct mps_permutation_plan {
  mps_permutation_arguments arguments; /* seed and offset are open, as above */
  int64_t counts;                      /* how many numbers are dealt from each block to each bucket */
  uint64_t blocks;                     /* the generator goes on by */
  double deal_cost, shuffle_cost;      /* nanoseconds */
} mps_permutation_plan;

MPS_WARN_UNUSED mps_status mps_permutation_plan_make(mps_permutation_plan *plan, int64_t count);

/* Two passes: running sums of each row of weights, then a search in them for each sample. */
typedef struct mps_multinomial_plan {
  mps_multinomial_arguments arguments; /* seed and offset are open, as above */
  uint64_t rows, samples;              /* threads of the passes */
  uint64_t blocks;                     /* the generator goes on by */
  double sums_cost, search_cost;       /* nanoseconds */
} mps_multinomial_plan;

/* `weights` has shape rows x categories, `out` rows x samples. */
void mps_multinomial_plan_make(mps_multinomial_plan *plan, const mps_tensor *weights, const mps_tensor *out);

#endif
