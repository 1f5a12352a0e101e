// SPDX-License-Identifier: BSD-3-Clause
//
// linalg: what the factorisations need besides their provider: row exchanges as a permutation.

#include <metal_stdlib>
#include "error.h"
#include "linalg_arguments.h"

using namespace metal;

// permutation[i] = where row i of the product of a factorisation comes from: the identity with entries k and pivots[k] - 1 exchanged for
// each k in turn. One thread an item.
kernel void linalg_permutation(device const int *pivots [[buffer(0)]], device long *permutation [[buffer(1)]],
                               constant mps_permutation_arguments &a [[buffer(2)]], device mps_kernel_error *error [[buffer(3)]],
                               uint item [[thread_position_in_grid]]) {
  device const int *exchange = pivots + long(item) * a.pivots;
  device long *rows = permutation + long(item) * a.rows;
  for (long i = 0; i < a.rows; i++) rows[i] = i;
  for (long i = 0; i < a.pivots; i++) {
    const long other = long(exchange[i]) - 1;
    if (other < 0 || other >= a.rows) {
      report_error(error, MPS_KERNEL_ERROR_PIVOT, other + 1, a.rows, 0);
      return;
    }
    const long held = rows[i];
    rows[i] = rows[other];
    rows[other] = held;
  }
}
