/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_write: what the two files that write have in common.
 */
#ifndef OPENMPS_SHADER_LANES_WRITE_H
#define OPENMPS_SHADER_LANES_WRITE_H

#include <stdio.h>

#include "shader/lanes_internal.h"

/* Numbers of metadata. */
typedef struct lanes_numbers {
  uint32_t access; /* the access group of what one thread does */
  uint32_t empty;  /* !{} */
  uint32_t loop;   /* of the loop over lanes */
} lanes_numbers;

/* Writes the function of the region behind a site: i32 (context, thread, storage, slot, first thread of the simdgroup, values that are alike
 * in all lanes...): the site that it comes to. */
MPS_WARN_UNUSED mps_status lanes_write_region(const lanes_function *f, uint32_t site, const lanes_numbers *numbers, ir_text *out);

/* Reads a kept value of thread `slot` from %m.storage; it is %m.v<number returned>. */
uint32_t lanes_put_load(ir_text *out, const lanes_value *v, const char *slot, uint32_t group, uint32_t *temporaries);

#endif
