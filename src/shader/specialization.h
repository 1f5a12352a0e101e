/* SPDX-License-Identifier: BSD-3-Clause
 *
 * specialization: the values that one kernel's function constants get: whether they are valid, what they are called, and their C++ text.
 */
#ifndef OPENMPS_SHADER_SPECIALIZATION_H
#define OPENMPS_SHADER_SPECIALIZATION_H

#include <stddef.h>

#include "openmps/library.h"

#define MPS_CONSTANT_TEXT 256 /* bytes that hold a value's text */

typedef struct mps_specialization {
  const char *function; /* host name of the kernel; no other one is compiled */
  const mps_function_constant *constants; /* of two that mean the same constant, the later one counts */
  uint32_t count;
} mps_specialization;

/* INVALID_ARGUMENT tells which value has no type, number of components, name or bytes. */
MPS_WARN_UNUSED mps_status mps_specialization_check(const mps_specialization *s);
/* A text that two specialisations of one source share only if they are the same. The caller frees it; NULL when out of memory. */
char *mps_specialization_key(const mps_specialization *s);

/* "int", "float4" */
void mps_constant_type_name(mps_constant_type type, uint32_t components, char out[16]);
/* The type that `word` names in Metal; false if it is none that a function constant may have. */
bool mps_constant_type_read(const char *word, size_t length, mps_constant_type *out_type, uint32_t *out_components);
/* A C++ expression with exactly this value. */
void mps_constant_print(const mps_function_constant *constant, char out[MPS_CONSTANT_TEXT]);
/* "'scale' (index 3)" as far as the value tells them. */
void mps_constant_describe(const mps_function_constant *constant, char out[MPS_CONSTANT_TEXT]);

#endif
