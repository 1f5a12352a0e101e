/* SPDX-License-Identifier: BSD-3-Clause
 *
 * abi: what a compiled kernel and the host driver agree on. Read by C (the driver) and by the C++ that the shader reader writes.
 *
 * A kernel library is a shared object that exports one symbol, `mps_host_library`. Each kernel has one entry, which runs a box of
 * threads of the grid; boxes are cut on threadgroup boundaries, and any number of them may run at once.
 */
#ifndef OPENMPS_HOST_ABI_H
#define OPENMPS_HOST_ABI_H

#if defined(__cplusplus)
extern "C" {
#endif

#define MPS_HOST_ABI_VERSION 1

/* No include here: kernels are compiled with -nostdinc. */
typedef struct mps_host_dispatch {
  void *const *buffers;               /* by [[buffer(n)]] index */
  const unsigned long long *lengths;  /* bytes behind each buffer address */
  unsigned long long grid[3];         /* threads_per_grid */
  unsigned int group[3];              /* threads_per_threadgroup */
  unsigned int reserved;
  unsigned long long begin[3];        /* the box to run: first thread, */
  unsigned long long end[3];          /* and one behind the last */
  void *const *threadgroup;           /* memory of [[threadgroup(n)]] arguments */
} mps_host_dispatch;

typedef void (*mps_host_entry)(const mps_host_dispatch *dispatch);

typedef struct mps_host_function {
  const char *name;
  mps_host_entry entry;
  unsigned int buffer_count;
  unsigned int max_threads_per_threadgroup;
  unsigned int static_threadgroup_bytes;
  unsigned int flags; /* MPS_FUNCTION_* of driver.h */
  unsigned int buffer_mask; /* bit n: [[buffer(n)]] is a parameter, and must be bound */
  unsigned int reserved;
} mps_host_function;

typedef struct mps_host_library_table {
  unsigned int abi_version;
  unsigned int function_count;
  const mps_host_function *const *functions;
} mps_host_library_table;

#if defined(__cplusplus)
}
#endif
#endif
