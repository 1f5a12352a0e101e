/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment_reduce_arguments: what the kernels for reductions of segments are told; written by src/ops/segment_reduce_plan.c.
 *
 * Data is outer x length x inner. Row o of the bounds says where the segments of data[o] are: `bounds` numbers a row, either offsets (one more than
 * there are segments: segment s goes from bounds[s] to bounds[s + 1]) or ends (segment s goes from bounds[s - 1], or 0, to bounds[s]).
 */
#ifndef OPENMPS_KERNELS_SEGMENT_REDUCE_ARGUMENTS_H
#define OPENMPS_KERNELS_SEGMENT_REDUCE_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_SEGMENT_SUM 0
#define MPS_SEGMENT_MEAN 1
#define MPS_SEGMENT_PROD 2
#define MPS_SEGMENT_MAX 3
#define MPS_SEGMENT_MIN 4
#define MPS_SEGMENT_BLOCK 64 /* neighbours along inner that a thread takes */

typedef struct mps_segment_reduce_arguments {
  int64_t segments; /* of a row */
  int64_t length;   /* of a row of data */
  int64_t inner;
  int64_t bounds;   /* numbers in a row of bounds: segments, or one more for offsets */
  uint32_t mode;    /* MPS_SEGMENT_... */
  uint32_t has_initial;
  float initial;    /* what a segment starts with */
} mps_segment_reduce_arguments;

#endif
