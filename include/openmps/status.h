/* SPDX-License-Identifier: BSD-3-Clause
 *
 * status: how every fallible call of OpenMPS answers.
 *
 * A call returns an mps_status; 0 is success. The detail of a failure (a sentence with the values in it) is kept in the calling
 * thread's error record and read with mps_error_message(). A failing call leaves nothing behind.
 */
#ifndef OPENMPS_STATUS_H
#define OPENMPS_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MPS_API __attribute__((visibility("default")))
#define MPS_WARN_UNUSED __attribute__((warn_unused_result))
#define MPS_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#else
#define MPS_API
#define MPS_WARN_UNUSED
#define MPS_PRINTF(format_index, first_argument)
#endif

/* X(NAME, value, "meaning"): the one list of codes. Values are part of the ABI. */
#define MPS_STATUS_LIST(X)                                                                      \
  X(OK, 0, "success")                                                                           \
  X(INVALID_ARGUMENT, 1, "an argument is outside of what the call accepts")                     \
  X(OUT_OF_MEMORY, 2, "the memory limit of the device or of the system is reached")             \
  X(NOT_FOUND, 3, "a name (kernel, file, driver) is unknown")                                   \
  X(NOT_IMPLEMENTED, 4, "the operation has no implementation for these types")                  \
  X(COMPILE_ERROR, 5, "the shader compiler refused the source")                                 \
  X(KERNEL_ERROR, 6, "a kernel reported an error (an index out of range, say); raised at a wait") \
  X(DEVICE_LOST, 7, "the device cannot be used any more (also: used in a forked child)")        \
  X(INTERRUPTED, 8, "a wait was ended by the interrupt check (Ctrl-C)")                         \
  X(SYSTEM_ERROR, 9, "the operating system refused a request")                                  \
  X(INTERNAL_ERROR, 10, "a defect of OpenMPS itself")                                           \
  X(PROVIDER_ERROR, 11, "the dense-maths provider failed")

typedef enum mps_status {
#define X(name, value, meaning) MPS_STATUS_##name = value,
  MPS_STATUS_LIST(X)
#undef X
} mps_status;

/* The name of a code ("OUT_OF_MEMORY"), never NULL. Any thread. */
MPS_API const char *mps_status_name(mps_status status);

/* The sentence of the last failure in this thread; "" if there was none. Valid until the next failing call of this thread. */
MPS_API const char *mps_error_message(void);

/* Where the last failure came from: operator name for a kernel error, else "". Same lifetime. */
MPS_API const char *mps_error_operator(void);

/* Sets the calling thread's error text and returns `status`. For drivers, providers and callbacks of the caller. */
MPS_API mps_status mps_error_set(mps_status status, const char *format, ...) MPS_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
