/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options: the one table of settings. Each is read from the environment at its first use and stays as it was then.
 */
#ifndef OPENMPS_BASE_OPTIONS_H
#define OPENMPS_BASE_OPTIONS_H

#include "openmps/options.h"

/* X(ID, environment variable, type, default, "what it does") */
#define MPS_OPTION_LIST(X)                                                                                                        \
  X(ENABLE, "OPENMPS", bool, "1", "0 leaves PyTorch alone: the package registers nothing")                                        \
  X(DRIVER, "OPENMPS_DRIVER", string, "host", "driver of the default device: host, null")                                         \
  X(LOG, "OPENMPS_LOG", string, "", "log levels, area:level,... (levels: error warning info debug trace; area all)")              \
  X(KERNEL_PATH, "OPENMPS_KERNEL_PATH", string, "", "directory of the compiled kernel libraries; default: kernels/ beside libopenmps") \
  X(KERNEL_LEVEL, "OPENMPS_KERNEL_LEVEL", string, "", "processor level of the kernels: x86-64, x86-64-v3, x86-64-v4; default: the best") \
  X(THREADS, "OPENMPS_THREADS", int, "0", "threads that kernels run on; 0 = the processors this process may use")                 \
  X(FUSION, "OPENMPS_FUSION", bool, "1", "0 runs each queued step by itself")                                                     \
  X(CLANG, "OPENMPS_CLANG", string, "", "clang (or zig) that compiles Metal source; default: the ziglang package")                \
  X(SHADER_INCLUDE, "OPENMPS_SHADER_INCLUDE", string, "", "folders, separated by colons, that user shaders include from (for c10/metal)") \
  X(SHADER_LANES, "OPENMPS_SHADER_LANES", bool, "1", "0 gives each thread a stack where threads of a group meet, in place of loops over lanes") \
  X(CACHE, "OPENMPS_CACHE", bool, "1", "0 keeps no compiled shaders on disk")                                                     \
  X(CACHE_PATH, "OPENMPS_CACHE_PATH", string, "", "directory of compiled shaders; default: openmps/ in the user's cache directory") \
  X(CACHE_SIZE, "OPENMPS_CACHE_SIZE", int, "1073741824", "bytes that compiled shaders may take on disk; the longest unused go first") \
  X(HIGH_WATERMARK_RATIO, "PYTORCH_MPS_HIGH_WATERMARK_RATIO", double, "1.7", "hard memory limit / recommended memory; 0 = no limit") \
  X(LOW_WATERMARK_RATIO, "PYTORCH_MPS_LOW_WATERMARK_RATIO", double, "1.4", "soft memory limit / recommended memory; 0 = none")     \
  X(DEBUG_ALLOCATOR, "PYTORCH_DEBUG_MPS_ALLOCATOR", int, "0",                                                                     \
    "bits: 1 limits and totals, 2 allocations, 4 reuses, 8 releases, 16 large pools only")                                        \
  X(ENABLE_FALLBACK, "PYTORCH_ENABLE_MPS_FALLBACK", bool, "0", "1 runs operators without an MPS kernel on the CPU")               \
  X(FAST_MATH, "PYTORCH_MPS_FAST_MATH", bool, "0", "1 compiles user shaders with fast maths")                                     \
  X(SHADER_VALIDATION, "OPENMPS_SHADER_VALIDATION", bool, "0", "1 compiles user shaders so that wrong accesses and races are reported") \
  X(MTL_SHADER_VALIDATION, "MTL_SHADER_VALIDATION", bool, "0", "the same, by Metal's name")                                        \
  X(MTL_LOG_LEVEL, "MTL_LOG_LEVEL", string, "", "the least of kernels' messages (os_log) that is shown: MTLLogLevelDebug, ...Info, ...Notice, ...Error, ...Fault") \
  X(PREFER_METAL, "PYTORCH_MPS_PREFER_METAL", bool, "0", "1 uses OpenMPS's own matrix kernels instead of the dense provider")      \
  X(TRACE_SIGNPOSTS, "PYTORCH_MPS_TRACE_SIGNPOSTS", int, "0", "bits of the signpost profiler")                                    \
  X(LOG_PROFILE_INFO, "PYTORCH_MPS_LOG_PROFILE_INFO", int, "0", "bits of the profiler's log")                                      \
  X(HEAP_GUARD, "OPENMPS_HEAP_GUARD", int, "0",                                                                                   \
    "bits: 1 looks at guard bytes around each buffer when it is freed, 2 after each kernel, 4 fills new buffers with NaN")

typedef enum mps_option {
#define X(id, name, type, value, doc) MPS_OPTION_##id,
  MPS_OPTION_LIST(X)
#undef X
  MPS_OPTION_COUNT
} mps_option;

/* The value in force. Strings are never NULL and live for ever; a text that is no number counts as the default (and is logged once).
 * Integers take base prefixes (0x10); bools: 0, false, no, off, empty are false. Any thread. */
const char *mps_option_string(mps_option option);
int64_t mps_option_int(mps_option option);
double mps_option_double(mps_option option);
bool mps_option_bool(mps_option option);
/* True when the environment or mps_option_set gave it a value. */
bool mps_option_is_set(mps_option option);
/* Replaces the value from now on; NULL forgets what was read, so that the environment is read again. */
void mps_option_set(mps_option option, const char *value);

#endif
