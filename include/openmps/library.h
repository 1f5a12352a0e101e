/* SPDX-License-Identifier: BSD-3-Clause
 *
 * library: Metal kernels, compiled; pipelines made of them; the encoder that dispatches them on a stream.
 *
 * Libraries and pipelines are reference counted and may be shared between threads. An encoder lives on the caller's stack and
 * belongs to one thread.
 */
#ifndef OPENMPS_LIBRARY_H
#define OPENMPS_LIBRARY_H

#include <stdbool.h>

#include "openmps/stream.h"
#include "openmps/texture.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mps_library mps_library;
typedef struct mps_pipeline mps_pipeline;

/* The kernels that OpenMPS ships; borrowed. */
MPS_API MPS_WARN_UNUSED mps_status mps_library_builtin(mps_device *device, mps_library **out_library);
/* Compiles Metal source. COMPILE_ERROR: mps_error_message() holds the compiler's text with the source's own lines and columns. */
MPS_API MPS_WARN_UNUSED mps_status mps_library_compile(mps_device *device, const char *source, const char *name, mps_library **out_library);
/* A folder that sources compiled from now on may include from, behind those of OPENMPS_SHADER_INCLUDE. Any thread. */
MPS_API void mps_library_add_include(const char *folder);
/* The clang or zig to compile with where OPENMPS_CLANG names none. Any thread. */
MPS_API void mps_library_offer_compiler(const char *path);
/* What the compiler makes of a source on its way to code, in this order. */
typedef enum mps_shader_stage {
  MPS_SHADER_STAGE_PREPROCESSED, /* Metal source without directives */
  MPS_SHADER_STAGE_READER,       /* the C++ that is written for it */
  MPS_SHADER_STAGE_LANES,        /* LLVM IR of kernels whose threads meet: loops over the lanes of simdgroups */
  MPS_SHADER_STAGE_CHECKED,      /* LLVM IR with the calls of checked mode */
  MPS_SHADER_STAGE_LLVM,         /* LLVM IR that machine code is made of */
  MPS_SHADER_STAGE_ASSEMBLY,
} mps_shader_stage;
/* One of them as text, which the caller frees; for the device's processor level and the options in force. Runs the compiler each time. Any
 * thread. COMPILE_ERROR as from mps_library_compile; NOT_FOUND: no threads meet in this source; NOT_IMPLEMENTED: they do, and why there
 * are no loops over lanes. */
MPS_API MPS_WARN_UNUSED mps_status mps_shader_emit(mps_device *device, const char *source, const char *name, mps_shader_stage stage,
                                                   char **out_text);
/* What was compiled lies on disk (OPENMPS_CACHE_PATH). Neither call starts a device; another process may use the files meanwhile. */
typedef struct mps_shader_cache_info {
  char path[1024]; /* "" = there is no place for it */
  uint64_t entries, bytes, limit;
  bool enabled;
} mps_shader_cache_info;
MPS_API void mps_shader_cache_get_info(mps_shader_cache_info *out_info);
/* Removes the files of the cache and nothing else; tells how many, and their bytes. */
MPS_API void mps_shader_cache_clear(uint64_t *out_entries, uint64_t *out_bytes);
MPS_API mps_library *mps_library_retain(mps_library *library);
MPS_API void mps_library_release(mps_library *library); /* accepts NULL */
MPS_API uint32_t mps_library_function_count(const mps_library *library);
MPS_API const char *mps_library_function_name(const mps_library *library, uint32_t index);

/* The pipeline of one kernel; cached by the library, borrowed, lives as long as the library. NOT_FOUND for an unknown name. Function constants
 * have no value: they are zero, is_function_constant_defined is false. */
MPS_API MPS_WARN_UNUSED mps_status mps_library_pipeline(mps_library *library, const char *function, mps_pipeline **out_pipeline);

/* ---- function constants ---- */
/* The type of a constant that the source declares with [[function_constant(n)]]. */
typedef enum mps_constant_type {
  MPS_CONSTANT_BOOL, MPS_CONSTANT_CHAR, MPS_CONSTANT_UCHAR, MPS_CONSTANT_SHORT, MPS_CONSTANT_USHORT, MPS_CONSTANT_INT, MPS_CONSTANT_UINT,
  MPS_CONSTANT_LONG, MPS_CONSTANT_ULONG, MPS_CONSTANT_HALF, MPS_CONSTANT_BFLOAT, MPS_CONSTANT_FLOAT
} mps_constant_type;

typedef struct mps_function_constant {
  const char *name; /* as the source declares it; NULL: `index` tells which one */
  uint32_t index;
  mps_constant_type type; /* as the source declares it: nothing is converted */
  uint32_t components;    /* 2 to 4 of a vector; 0 or 1: a scalar */
  const void *value;      /* the components behind each other: bytes 0 or 1 of a bool, 2 bytes of half and bfloat, 8 of long */
} mps_function_constant;

/* The pipeline of one kernel with these values, Metal's newFunctionWithName:constantValues: and what comes behind it. The values are borrowed
 * for the call; to the kernel they are constants of the compiler. The first call with some values compiles (or finds the code on disk), later ones
 * find it in the library, which the pipeline lives as long as. Any thread.
 * NOT_FOUND: no such kernel. INVALID_ARGUMENT: a value of another type than the source's, or of a constant that the source has not; or a constant
 * without a value that the kernel uses, and that the source never asks is_function_constant_defined for. COMPILE_ERROR as above. */
MPS_API MPS_WARN_UNUSED mps_status mps_library_specialize(mps_library *library, const char *function, const mps_function_constant *constants,
                                                          uint32_t count, mps_pipeline **out_pipeline);

typedef struct mps_pipeline_info {
  const char *name;
  uint32_t max_threads_per_threadgroup;
  uint32_t thread_execution_width;
  uint32_t static_threadgroup_bytes;
  uint32_t buffer_count; /* one more than the highest [[buffer(n)]] */
} mps_pipeline_info;
MPS_API const mps_pipeline_info *mps_pipeline_get_info(const mps_pipeline *pipeline);

/* ---- encoder ---- */
#define MPS_ENCODER_MAX_BUFFERS 31
#define MPS_ENCODER_MAX_TEXTURES 16
#define MPS_ENCODER_MAX_SAMPLERS 16
#define MPS_ENCODER_MAX_BYTES 4096

/* Treat as opaque; begin/dispatch/end is the life of one. Setting an argument that is out of range is remembered and returned by dispatch. */
typedef struct mps_encoder {
  mps_stream *stream;
  const mps_pipeline *pipeline;
  const char *label;
  mps_status failure;
  uint32_t bytes_used;
  uint64_t argument_mask;
  uint64_t bytes_mask; /* which arguments are inline bytes */
  uint32_t indirect;   /* 1: buffers are reached through addresses in memory */
  uint32_t threadgroup_bytes[4];
  double cost; /* nanoseconds, 0 = unknown */
  struct {
    uint64_t address; /* device address, or position in `bytes` */
    uint64_t length;  /* bytes from there to the end of the allocation */
    uint64_t allocation; /* buffer identifier, 0 for bytes */
    uint32_t access;
  } arguments[1 + MPS_ENCODER_MAX_BUFFERS + MPS_ENCODER_MAX_TEXTURES + MPS_ENCODER_MAX_SAMPLERS]; /* textures begin at 32, samplers at 48 */
  uint64_t bytes[MPS_ENCODER_MAX_BYTES / 8];
} mps_encoder;

typedef enum mps_access { MPS_ACCESS_READ = 1, MPS_ACCESS_WRITE = 2, MPS_ACCESS_READ_WRITE = 3 } mps_access;

/* `label`: the operator's name, a string that lives for ever; shown in errors and profiles. */
MPS_API void mps_encoder_begin(mps_encoder *encoder, mps_stream *stream, const char *label);
MPS_API void mps_encoder_set_pipeline(mps_encoder *encoder, const mps_pipeline *pipeline);
MPS_API void mps_encoder_set_buffer(mps_encoder *encoder, uint32_t index, mps_buffer *buffer, uint64_t offset, mps_access access);
MPS_API void mps_encoder_set_bytes(mps_encoder *encoder, uint32_t index, const void *bytes, uint32_t length);
/* Binds no memory, as for an empty tensor: the kernel must not look at it. */
MPS_API void mps_encoder_set_nothing(mps_encoder *encoder, uint32_t index);
/* The kernel reads or writes `buffer` through an address that it finds in memory (an argument buffer). Returns that address, to be put
 * there. Said once for each dispatch. */
MPS_API uint64_t mps_encoder_use_buffer(mps_encoder *encoder, mps_buffer *buffer);
/* Binds the texture at [[texture(index)]]; NULL: none, which reads as 0. After the dispatch it may be released: the step
 * keeps its memory. */
MPS_API void mps_encoder_set_texture(mps_encoder *encoder, uint32_t index, mps_texture *texture);
/* Binds a sampler at [[sampler(index)]]; copied. NULL: nearest texels, coordinates from 0 to 1, clamped to the edge. */
MPS_API void mps_encoder_set_sampler(mps_encoder *encoder, uint32_t index, const mps_sampler_descriptor *sampler);
/* Binds the stream's error record (kernels/error.h). */
MPS_API void mps_encoder_set_error_buffer(mps_encoder *encoder, uint32_t index);
/* Binds the stream's record of PyTorch's c10/metal/error.h: the first text that TORCH_REPORT_ERROR leaves there comes back from the next wait
 * as KERNEL_ERROR. */
MPS_API void mps_encoder_set_error_messages(mps_encoder *encoder, uint32_t index);
MPS_API void mps_encoder_set_threadgroup_bytes(mps_encoder *encoder, uint32_t index, uint32_t length);
/* Estimated time on one core, nanoseconds: decides how the step is split and when the executor is woken. */
MPS_API void mps_encoder_set_cost(mps_encoder *encoder, double nanoseconds);
/* Appends one dispatch of threads[0] x threads[1] x threads[2] threads (0 = nothing is appended). group NULL: the device's preference.
 * Arguments stay set, so that several dispatches may follow each other. */
MPS_API MPS_WARN_UNUSED mps_status mps_encoder_dispatch(mps_encoder *encoder, const uint64_t threads[3], const uint32_t group[3]);

#ifdef __cplusplus
}
#endif
#endif
