/* SPDX-License-Identifier: BSD-3-Clause
 *
 * extreme: the larger and the smaller of two values; a NaN wins. A place in memory that keeps its value under a condition is stored with a mask,
 * which many processors do ten times slower than they add. So for floats no result is one of the operands by a condition alone, and loops
 * over whole numbers keep what they have in registers or write it to another place.
 */
#ifndef OPENMPS_KERNELS_EXTREME_H
#define OPENMPS_KERNELS_EXTREME_H

/* The sum of a NaN and anything is a NaN. */
inline float larger(float a, float b) {
  const float plain = a > b ? a : b;
  return a != a ? a + plain : plain;
}
inline float smaller(float a, float b) {
  const float plain = a < b ? a : b;
  return a != a ? a + plain : plain;
}
inline int larger(int a, int b) { return a > b ? a : b; }
inline int smaller(int a, int b) { return a < b ? a : b; }
inline long larger(long a, long b) { return a > b ? a : b; }
inline long smaller(long a, long b) { return a < b ? a : b; }

#endif
