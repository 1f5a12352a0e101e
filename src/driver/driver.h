/* SPDX-License-Identifier: BSD-3-Clause
 *
 * driver: THE contract between the runtime and a machine. Few nouns, one small vtable each.
 *
 * The runtime validates and orders; a driver trusts what it is given and runs steps in the order it gets them. Wrapper drivers
 * (validation, fault injection) implement the same tables. A driver includes base and this folder only.
 */
#ifndef OPENMPS_DRIVER_H
#define OPENMPS_DRIVER_H

#include "driver/program.h"
#include "openmps/dense.h"
#include "openmps/device.h"

/* ---- steps: what a stream hands over ---- */
typedef enum mps_step_kind {
  MPS_STEP_DISPATCH,  /* a kernel over a grid */
  MPS_STEP_POINTWISE, /* a program over an iteration space */
  MPS_STEP_DENSE,     /* a call of the dense-maths provider */
  MPS_STEP_COPY,      /* bytes, memmove semantics */
  MPS_STEP_FILL,      /* bytes */
  MPS_STEP_REDUCE,    /* programs and reductions over rows: what graphs are made of */
  MPS_STEP_CALLBACK,  /* a C function, on the executor */
  MPS_STEP_SIGNAL,    /* runtime only: an event */
  MPS_STEP_WAIT,      /* runtime only: another stream's event */
  MPS_STEP_FREE,      /* runtime only: allocation `identifier` is dead after this point */
} mps_step_kind;

/* Every step starts with this. Steps lie behind each other in a command buffer, 16-byte aligned, never moved after encoding. */
typedef struct mps_step {
  uint32_t kind;     /* mps_step_kind */
  uint32_t bytes;    /* of the whole step, so that the next one is found */
  const char *label; /* operator name, lives for ever */
  double cost;       /* nanoseconds on one core, an estimate */
} mps_step;

typedef struct mps_step_argument {
  uint64_t address;    /* device address; for inline bytes the address of the bytes inside of the step */
  uint64_t length;     /* bytes from address to the end of the allocation */
  uint64_t allocation; /* buffer identifier; 0 for inline bytes */
  uint32_t access;     /* mps_access; 0 = not set */
  uint32_t reserved;
} mps_step_argument;

typedef struct mps_step_dispatch {
  mps_step step;
  const mps_driver_function *function;
  uint64_t threads[3]; /* the grid, all > 0 */
  uint32_t group[3];
  uint32_t threadgroup_bytes[4]; /* of [[threadgroup(n)]] arguments */
  uint32_t argument_count;
  uint16_t unknown;  /* 1: a kernel of a user's own, whose cost is a guess */
  uint16_t indirect; /* 1: it also touches buffers that no argument names, through addresses in memory (argument buffers) */
  mps_step_argument arguments[]; /* then the inline bytes */
} mps_step_dispatch;

typedef struct mps_step_pointwise {
  mps_step step;
  mps_program program; /* its operands and instructions lie behind this struct, inside of the step */
} mps_step_pointwise;

typedef struct mps_step_dense {
  mps_step step;
  mps_status (*function)(const void *parameters);
  const void *parameters; /* inside of this step */
  uint32_t buffer_count;
  uint32_t anywhere;      /* not 0: any thread may run it; else the stream's executor alone */
  uint64_t allocations[]; /* identifiers of the buffers, then the parameters */
} mps_step_dense;

typedef struct mps_step_copy {
  mps_step step;
  uint64_t source, destination; /* device addresses */
  uint64_t length;
  uint64_t source_allocation, destination_allocation;
} mps_step_copy;

typedef struct mps_step_fill {
  mps_step step;
  uint64_t address, length, allocation;
  uint32_t value; /* the byte */
  uint32_t reserved;
} mps_step_fill;

/* ---- reductions: programs whose values are folded (MPS_STEP_REDUCE) ----
 * Order, the same whatever the threads and whatever is fused: chunks of the reduced elements; in a chunk blocks of 8,192 elements go into
 * 16 lanes, which are folded as a tree (inner layout), or 64 rows are added up by fours (outer); blocks and chunks merge as a tree, left to right. */
#define MPS_REDUCE_MAX_RESULTS 4

/* Kernels of one operation in one accumulating type: reduce_<lanes, fold, short, rows, combine>_* of kernels/reduce_block.metal. */
enum { MPS_REDUCE_LANES, MPS_REDUCE_FOLD, MPS_REDUCE_SHORT, MPS_REDUCE_ROWS, MPS_REDUCE_COMBINE, MPS_REDUCE_FUNCTIONS };

typedef struct mps_reduce_result {
  uint8_t source;  /* register or read operand of the program that holds the value */
  uint8_t compute; /* mps_compute of source and accumulator: F32, I64 or C64 */
  uint16_t reserved[3];
  uint64_t identity;   /* bytes of the accumulator of nothing */
  uint64_t address;    /* one accumulator for each kept element, dense, in the order of the iteration */
  uint64_t allocation;
  const mps_driver_function *functions[MPS_REDUCE_FUNCTIONS];
} mps_reduce_result;

/* A program over kept_count * reduce_count elements in the order in which its dimensions are given: kept ones first (inner layout) or reduced
 * ones first (outer). Without results it is a pointwise program, and reduce_count is the elements of a row. */
typedef struct mps_reduce_stage {
  mps_program program; /* operands and instructions lie behind the stages, inside of the step */
  uint64_t kept_count, reduce_count;
  uint64_t chunk; /* reduced elements that are folded before chunks are merged; >= reduce_count: one chunk */
  uint32_t outer; /* 1: outer layout */
  uint32_t result_count;
  mps_reduce_result results[MPS_REDUCE_MAX_RESULTS];
} mps_reduce_stage;

/* rows > 0: stages share their outermost dimension of `rows`; a stage reads of earlier ones only what belongs to the same row, so that all
 * of them may run on some rows before any runs on the next. rows = 0: one stage. */
typedef struct mps_step_reduce {
  mps_step step;
  uint64_t rows;
  uint32_t stage_count;
  uint32_t reserved;
  mps_reduce_stage stages[];
} mps_step_reduce;

typedef struct mps_step_callback {
  mps_step step;
  void (*function)(void *context);
  void *context;
} mps_step_callback;

/* ---- memory ---- */
typedef struct mps_driver_memory {
  void *contents;   /* CPU address; NULL where memory is not unified */
  uint64_t address; /* device address */
  uint64_t length;  /* bytes, multiple of limits.page_bytes */
  void *handle;     /* the driver's own */
} mps_driver_memory;

/* ---- what a device can do: const data, filled by open() ---- */
typedef struct mps_driver_limits {
  uint64_t page_bytes;          /* allocations are multiples of it */
  uint64_t buffer_alignment;    /* of sub-allocations: 64 on the host */
  uint64_t max_buffer_length;
  uint64_t recommended_memory;
  uint32_t core_count;
  uint32_t thread_execution_width;
  uint32_t max_threads_per_threadgroup;
  uint32_t preferred_threads_per_threadgroup;
  uint32_t threadgroup_memory_bytes;
  bool unified_memory;
  bool asynchronous; /* execute() only enqueues: drain() must be called before results are read */
} mps_driver_limits;

typedef struct mps_driver_device mps_driver_device;
typedef struct mps_driver_queue mps_driver_queue;
typedef struct mps_driver_library mps_driver_library;

/* What a driver tells of a kernel. Borrowed, lives as long as its library. */
struct mps_driver_function {
  const char *name;
  uint32_t max_threads_per_threadgroup;
  uint32_t static_threadgroup_bytes;
  uint32_t buffer_count;
  uint32_t flags; /* MPS_FUNCTION_* */
  uint32_t buffer_mask; /* bit n: [[buffer(n)]] is a parameter; 0 = not known */
  void (*entry)(const void *dispatch); /* host: the compiled entry (host/abi.h); elsewhere NULL */
  void *handle;                        /* the driver's own */
};
enum {
  MPS_FUNCTION_USES_BARRIER = 1,
  MPS_FUNCTION_USES_SIMDGROUP = 2,
  MPS_FUNCTION_64_BIT_GRID = 4, /* its position is 64 bits wide: a dimension of the grid may exceed 2^32 - 1 threads */
  MPS_FUNCTION_CHECKED = 8, /* its accesses are looked at while it runs: buffers that it has by address must live until then */
  MPS_FUNCTION_USES_TEXTURES = 16, /* or samplers: it looks at those that are not bound too */
};

/* All entries are required unless marked optional (may be NULL). Entries may be called from any thread unless said otherwise;
 * none of them calls back into the runtime. Failing entries set the thread's error text and leave nothing behind. */
typedef struct mps_driver_device_vtable {
  /* Frees the device; all queues, libraries and memory are gone before. */
  void (*close)(mps_driver_device *device);

  /* `length` bytes (a multiple of page_bytes), zero-filled or not; OUT_OF_MEMORY when the system refuses. */
  mps_status (*allocate)(mps_driver_device *device, uint64_t length, mps_driver_memory *out_memory);
  void (*free)(mps_driver_device *device, mps_driver_memory *memory);
  /* optional: gives the pages of the range back to the system; what they hold becomes undefined. The memory stays allocated. */
  void (*discard)(mps_driver_device *device, mps_driver_memory *memory, uint64_t offset, uint64_t length);
  /* Bytes that the driver holds now, its own included. */
  uint64_t (*allocated)(const mps_driver_device *device);

  /* The shipped kernels for this machine; borrowed, lives as long as the device. Loads them at the first call. NOT_FOUND with the path. */
  mps_status (*builtin_library)(mps_driver_device *device, mps_driver_library **out_library);
  /* Loads compiled code (host: the path of a shared object; others: an image). The caller unloads. */
  mps_status (*load_library)(mps_driver_device *device, const void *image, size_t length, const char *path, mps_driver_library **out_library);
  void (*unload_library)(mps_driver_library *library);
  uint32_t (*function_count)(const mps_driver_library *library);
  const mps_driver_function *(*function_at)(const mps_driver_library *library, uint32_t index);
  /* NULL when unknown. Constant time. */
  const mps_driver_function *(*find_function)(const mps_driver_library *library, const char *name);

  /* One per stream. */
  mps_status (*create_queue)(mps_driver_device *device, mps_driver_queue **out_queue);
  void (*destroy_queue)(mps_driver_queue *queue);
  /* Runs (or, when asynchronous, enqueues) one step of the kinds up to CALLBACK. One thread at a time per queue. */
  mps_status (*execute)(mps_driver_queue *queue, const mps_step *step);
  /* optional (NULL when not asynchronous): waits until all that was executed is done. */
  mps_status (*drain)(mps_driver_queue *queue);
  /* Nanoseconds of the device's clock after the steps executed so far. */
  uint64_t (*timestamp)(mps_driver_queue *queue);
} mps_driver_device_vtable;

/* A driver's device embeds this first. */
struct mps_driver_device {
  const mps_driver_device_vtable *vtable;
  mps_driver_limits limits;
  const char *name;         /* for people; lives as long as the device */
  const char *kernel_level; /* as in mps_device_info */
  /* Set by the runtime, NULL before: the buffer that an address lies in. False: none. Any thread. */
  bool (*find_memory)(void *context, uint64_t address, uint64_t *out_begin, uint64_t *out_length);
  void *find_context;
};

/* A driver: how its device is opened. The registry is src/driver/registry.c. */
typedef struct mps_driver {
  const char *name;
  mps_status (*open)(mps_driver_device **out_device);
} mps_driver;

extern const mps_driver mps_driver_host;
extern const mps_driver mps_driver_null;
/* NULL when unknown. */
const mps_driver *mps_driver_find(const char *name);

#endif
