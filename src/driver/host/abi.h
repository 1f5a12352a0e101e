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

#define MPS_HOST_ABI_VERSION 4

/* No include here: kernels are compiled with -nostdinc. */
/* Places in `buffers`: 31 of [[buffer(n)]], then the layouts (openmps_texture/layout.h) of [[texture(n)]] and [[sampler(n)]]. */
#define MPS_HOST_TEXTURES 32
#define MPS_HOST_SAMPLERS 48
#define MPS_HOST_ARGUMENTS 64

typedef struct mps_host_dispatch {
  void *const *buffers;               /* MPS_HOST_ARGUMENTS; NULL: none is bound */
  const unsigned long long *lengths;  /* bytes behind each buffer address */
  unsigned long long grid[3];         /* threads_per_grid */
  unsigned int group[3];              /* threads_per_threadgroup */
  unsigned int reserved;
  unsigned long long begin[3];        /* the box to run: first thread, */
  unsigned long long end[3];          /* and one behind the last */
  void *const *threadgroup;           /* memory of [[threadgroup(n)]] arguments */
  const struct mps_host_services *services; /* set for kernels whose threads work together */
  void *state;                              /* the driver's, for run_group */
} mps_host_dispatch;

/* What a thread learns where threads of its simdgroup meet. */
typedef struct mps_host_meeting {
  const unsigned char *values; /* the value of lane i at i * bytes; of inactive lanes undefined. Until this thread's next meeting or barrier */
  unsigned int active;         /* a bit for each lane that takes part, the caller's among them */
  unsigned int lane;           /* the caller's */
} mps_host_meeting;

#define MPS_HOST_MEETING_BYTES 64 /* of one lane's value, at most */

/* A value of a kernel's message (metal_logging), or a component of a vector. */
typedef struct mps_host_log_value {
  unsigned long long bits;
  unsigned int bytes; /* of the value in the kernel */
  unsigned int kind;  /* 0: integer without sign, 1: with sign, 2: real, its bits those of a double */
} mps_host_log_value;

/* What the driver does for threads of one threadgroup. A thread that is in no group (a group of one) is a simdgroup of one lane.
 * `site`: an address that stands for the place in the kernel; threads meet that are at the same one. */
typedef struct mps_host_services {
  /* Runs function(context, i) for each i < count, all side by side; 0: none was run, for want of memory. */
  int (*run_group)(const mps_host_dispatch *dispatch, unsigned int count, void (*function)(void *context, unsigned int index), void *context);
  void (*barrier)(void);
  void (*meet)(const void *value, unsigned int bytes, const void *site, mps_host_meeting *out);
  unsigned int (*lane)(void);
  /* Around a loop in which threads meet: those behind in iterations go first. Returns the iteration count, for the thread to raise. */
  unsigned int *(*enter_loop)(const void *site);
  void (*leave_loop)(void);
  /* Memory for one threadgroup at a time, on a boundary of 64 bytes, until the entry returns; NULL: there is none, and nothing more is run. */
  void *(*storage)(const mps_host_dispatch *dispatch, unsigned long long bytes);
  /* A message; subsystem and category may be NULL. `type`: 0 default, 1 info, 2 debug, 16 error, 17 fault. */
  void (*log)(unsigned int type, const char *subsystem, const char *category, const char *format, const mps_host_log_value *values,
              unsigned int count);
} mps_host_services;

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
  const void **services; /* where the driver puts its mps_host_services; NULL: no kernel asks for them */
} mps_host_library_table;

#if defined(__cplusplus)
}
#endif
#endif
