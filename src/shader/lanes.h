/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes: turns a kernel that waits for other threads into loops over the threads of a threadgroup. LLVM IR text in, LLVM IR text out; no
 * library of LLVM takes part, so that any clang does, and whatever is not understood is refused rather than guessed.
 *
 * The shader compiler calls it for kernels with barriers and SIMD-group functions (docs/decisions/0015-lane-loops.md). A source that is refused
 * gets a stack for each thread.
 *
 * What goes in: functions `void mps_threads_<n>(ptr context, i32 thread)`, one thread of a group each, with everything inlined that meets
 * other threads. They meet in calls by value of functions that are declared and not defined:
 *   mps_collective_barrier(...)             all threads of the group that have not returned
 *   mps_collective_simdgroup_barrier(...)   the lanes of a simdgroup that come to this call
 *   T mps_collective_<name>(A, B, ...)      the same, and they exchange values: T and A, B are scalars or vectors
 * A thread's place in its simdgroup is i32 mps_lane_index(), which nobody defines either. An operand @mps_lanes_... of an exchange is there to have
 * that function compiled, and says nothing else.
 * Memory reached from `context` by constant offsets must not change while a group runs. Other memory of threads is unordered between two
 * meetings, as Metal has it; what a thread keeps to itself (its variables and private arrays) is kept for each.
 *
 * What comes out in their place: `void mps_group_<n>(ptr context, i32 threads, ptr storage)`, which runs a whole group, and the constant
 * `i32 mps_group_<n>_bytes`. `storage` has that many bytes for each thread, threads rounded up to 32, on a boundary of 64; no content
 * is expected. An exchange is made by a function that the module has to define, over 32 lanes, with bit l of `active` set for lanes
 * that take part; results of others must be left alone:
 *   void mps_lanes_<name>(const A *a, const B *b, ..., T *results, unsigned active)   (no `results` if T is void)
 * bool elements are bytes. Lanes that wait at different calls go on by who is behind: by the loops that they are in, the outermost first,
 * and how often they went round, then by the place. Loops are those with calls around them: mps_collective_loop_enter(i32 name) before,
 * _next(name) at the beginning of each round, _leave(name) on each way out, with a constant for a name. A barrier opens when all threads
 * that have not returned wait at one.
 */
#ifndef OPENMPS_SHADER_LANES_H
#define OPENMPS_SHADER_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "openmps/status.h"

typedef struct mps_lanes_function {
  uint32_t number;           /* of mps_threads_<number> */
  uint32_t bytes_per_thread;
  uint32_t meetings;         /* calls where threads meet */
  uint32_t values;           /* kept over a meeting */
} mps_lanes_function;

typedef struct mps_lanes_result {
  char *text;
  size_t length;
  mps_lanes_function *functions;
  uint32_t function_count;
} mps_lanes_result;

/* text[length] is 0, as mps_file_read leaves it. NOT_IMPLEMENTED: lane loops are not possible, with the reason; use fibers. Also without any mps_threads_<n>: the text comes back. */
MPS_WARN_UNUSED mps_status mps_lanes_transform(const char *text, size_t length, mps_lanes_result *out_result);
void mps_lanes_result_free(mps_lanes_result *result); /* accepts a zeroed one */

#endif
