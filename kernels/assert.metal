// SPDX-License-Identifier: BSD-3-Clause
//
// assert: reports when a condition does not hold. `text` says which words to use (src/runtime/failure.c).

#include "element.h"
#include "error.h"

kernel void assert_true(device const bool *condition [[buffer(0)]], constant long &text [[buffer(1)]], device mps_kernel_error *error [[buffer(2)]],
                        uint position [[thread_position_in_grid]]) {
  if (position == 0 && !element(condition)) report_error(error, MPS_KERNEL_ERROR_TEXT, text, 0, 0);
}
