/* SPDX-License-Identifier: BSD-3-Clause
 *
 * error: the record in which a kernel reports that a value was wrong. Shared by C and Metal. A stream has one record; the first report
 * wins, and the runtime turns it into a text, with the operator's name, at the next wait.
 */
#ifndef OPENMPS_KERNELS_ERROR_H
#define OPENMPS_KERNELS_ERROR_H

/* X(NAME, number, "text"): %V is value, %B bound, %D dimension, %T the text with the number value (src/runtime/failure.h). */
#define MPS_KERNEL_ERROR_LIST(X)                                                           \
  X(INDEX, 1, "index %V is out of bounds for dimension %D with size %B")                   \
  X(TARGET, 2, "Target %V is out of bounds.")                                              \
  X(FIRST_OFFSET, 20, "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got %V") \
  X(OFFSET, 21, "offsets[-1] can not be greater than input's length({%B}), but got offsets[-1] of {%V}") \
  X(RATE, 22, "invalid Poisson rate, expected rate to be non-negative")                    \
  X(PROBABILITY, 3, "probability tensor contains either `inf`, `nan` or element < 0")      \
  X(PROBABILITY_SUM, 4, "invalid multinomial distribution (sum of probabilities <= 0)")    \
  X(DIVISION, 5, "ZeroDivisionError")                                                      \
  X(SINGULAR, 6, "The diagonal element %V is zero, the factorization could not be completed because the input matrix is singular.") \
  X(NEGATIVE, 7, "the value %V at position %B is negative")                                \
  X(ASSERTION, 8, "assertion failed in a kernel (value %V, bound %B, dimension %D)") \
  X(PIVOT, 9, "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of lu_factor?") \
  X(REPEATS, 10, "repeats can not be negative")                                            \
  X(REPEATS_SIZE, 11, "allocated size does not match required size")                       \
  X(TEXT, 12, "%T")

enum mps_kernel_error_kind {
#define X(name, number, text) MPS_KERNEL_ERROR_##name = number,
  MPS_KERNEL_ERROR_LIST(X)
#undef X
};

#if defined(__cplusplus) || defined(__METAL_VERSION__)
#include <metal_stdlib>
struct mps_kernel_error {
  metal::atomic_uint count;
  uint kind;
  uint dimension;
  uint reserved;
  long value;
  long bound;
};

static inline void report_error(device mps_kernel_error *error, uint kind, long value, long bound, uint dimension) {
  if (metal::atomic_fetch_add_explicit(&error->count, 1u, metal::memory_order_relaxed) == 0u) {
    error->kind = kind;
    error->dimension = dimension;
    error->value = value;
    error->bound = bound;
  }
}
static inline void report_index_error(device mps_kernel_error *error, long index, long bound, uint dimension) {
  report_error(error, MPS_KERNEL_ERROR_INDEX, index, bound, dimension);
}
#else
#include <stdint.h>
typedef struct mps_kernel_error {
  uint32_t count; /* the driver's kernels add to it atomically; the runtime reads it when they are done */
  uint32_t kind;
  uint32_t dimension;
  uint32_t reserved;
  int64_t value;
  int64_t bound;
} mps_kernel_error;
#endif

#endif
