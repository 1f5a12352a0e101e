/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host_collectives: what lanes of a simdgroup make of the values that they bring to one call, over arrays of 32. C++17 without any header;
 * included in what clang compiles for the host. A bit of `active` stands for a lane that takes part; results of other lanes are left alone.
 *
 * Loops over lanes call it where <metal_simdgroup> calls mps_collective_*; kernels with a stack a thread have their own, which gives the
 * same bits (docs/decisions/0015-lane-loops.md).
 *
 * Sums and products add lane i and i + 16, then i and i + 8, and so on; a half without an active lane leaves the other one as it is.
 * Prefixes go upwards from lane 0. Integers wrap, half and bfloat are held in float and rounded once.
 */
#ifndef OPENMPS_SHADER_HOST_COLLECTIVES_H
#define OPENMPS_SHADER_HOST_COLLECTIVES_H

namespace mps_lanes {

constexpr unsigned width = 32, full = ~0u;

template <class T> struct held { typedef T type; };
template <> struct held<_Float16> { typedef float type; };
template <> struct held<__bf16> { typedef float type; };
template <> struct held<signed char> { typedef unsigned type; };
template <> struct held<unsigned char> { typedef unsigned type; };
template <> struct held<short> { typedef unsigned type; };
template <> struct held<unsigned short> { typedef unsigned type; };
template <> struct held<int> { typedef unsigned type; };
template <> struct held<long> { typedef unsigned long type; };
template <> struct held<long long> { typedef unsigned long long type; };

struct sum { template <class H> static inline H apply(H a, H b) { return a + b; } };
struct product { template <class H> static inline H apply(H a, H b) { return a * b; } };
struct all_bits { template <class T> static inline T apply(T a, T b) { return static_cast<T>(a & b); } };
struct any_bit { template <class T> static inline T apply(T a, T b) { return static_cast<T>(a | b); } };
struct odd_bits { template <class T> static inline T apply(T a, T b) { return static_cast<T>(a ^ b); } };
/* A number wins over NaN; of equal ones stays the first, as with Metal's min and max. */
struct smallest { template <class T> static inline T apply(T a, T b) { return b != b ? a : a <= b ? a : b; } };
struct largest { template <class T> static inline T apply(T a, T b) { return b != b ? a : a >= b ? a : b; } };

/* Gives `value(lane)` to each active lane. */
template <class T, class F> inline void give(T *results, unsigned active, F value) {
  if (active == full)
    for (unsigned i = 0; i < width; i++) results[i] = value(i);
  else
    for (unsigned i = 0; i < width; i++)
      if (active >> i & 1u) results[i] = value(i);
}

/* One value out of `Width` lanes from `first`; some lane of them is active. */
template <class Operation, class H, unsigned Width, class T> inline H tree(const T *values, unsigned active) {
  H v[Width];
  for (unsigned i = 0; i < Width; i++) v[i] = static_cast<H>(values[i]);
  unsigned there = active;
  for (unsigned step = Width / 2; step > 0; step /= 2) {
    if (active == full || (Width < width && active == (1u << Width % width) - 1u)) {
      for (unsigned i = 0; i < step; i++) v[i] = Operation::apply(v[i], v[i + step]);
      continue;
    }
    for (unsigned i = 0; i < step; i++) {
      const bool low = there >> i & 1u, high = there >> (i + step) & 1u;
      const H both = Operation::apply(v[i], v[i + step]);
      v[i] = low && high ? both : low ? v[i] : v[i + step];
    }
    there |= there >> step;
  }
  return v[0];
}

template <class Operation, unsigned Width, class H, class T> inline void reduce(const T *values, T *results, unsigned active) {
  for (unsigned first = 0; first < width; first += Width) {
    const unsigned mask = Width < width ? active >> first & ((1u << Width % width) - 1u) : active;
    if (mask == 0) continue;
    const T result = static_cast<T>(tree<Operation, H, Width>(values + first, mask));
    for (unsigned i = 0; i < Width; i++)
      if (mask >> i & 1u) results[first + i] = result;
  }
}

template <class Operation, bool Inclusive, class T> inline void prefix(const T *values, T *results, unsigned active) {
  typedef typename held<T>::type H;
  H total = H(), nothing = __is_same(Operation, product) ? H(1) : H(0);
  bool any = false;
  T out[width];
  for (unsigned i = 0; i < width; i++) {
    const bool there = active >> i & 1u;
    const H before = any ? total : nothing, next = any ? Operation::apply(total, static_cast<H>(values[i])) : static_cast<H>(values[i]);
    out[i] = static_cast<T>(Inclusive ? next : before);
    total = there ? next : total;
    any |= there;
  }
  give(results, active, [&](unsigned i) { return out[i]; });
}

/* The value of lane lanes[i]; zero when that one is not active or there is none. */
template <class T> inline void shuffle(const T *values, const unsigned *lanes, T *results, unsigned active) {
  T copy[width];
  for (unsigned i = 0; i < width; i++) copy[i] = active >> i & 1u ? values[i] : T(0);
  give(results, active, [&](unsigned i) { return lanes[i] < width ? copy[lanes[i] % width] : T(0); });
}

/* Matrices of 8 x 8 elements, two neighbours of a row in each lane: lane bits 4, 2, 1 are the row, bits 3, 0 the pair of columns, as in
 * <metal_simdgroup_matrix>. results = a * b, added up along the inner dimension behind c; all lanes have to be there for it to mean anything. */
inline void multiply_matrices(const float *a, const float *b, const float *c, float *results, unsigned active) {
  float left[8][8], right[8][8], total[8][8];
  for (unsigned i = 0; i < width; i++)
    for (unsigned k = 0; k < 2; k++) {
      const unsigned row = (i >> 2 & 4u) | (i >> 1 & 3u), column = (i >> 1 & 4u) | (i << 1 & 2u) | k;
      const bool there = active >> i & 1u;
      left[row][column] = there ? a[2 * i + k] : 0;
      right[row][column] = there ? b[2 * i + k] : 0;
      total[row][column] = c[2 * i + k];
    }
  for (unsigned row = 0; row < 8; row++)
    for (unsigned k = 0; k < 8; k++)
      for (unsigned column = 0; column < 8; column++) total[row][column] += left[row][k] * right[k][column];
  for (unsigned i = 0; i < width; i++)
    for (unsigned k = 0; k < 2; k++) {
      const unsigned row = (i >> 2 & 4u) | (i >> 1 & 3u), column = (i >> 1 & 4u) | (i << 1 & 2u) | k;
      if (active >> i & 1u) results[2 * i + k] = total[row][column];
    }
}

inline unsigned ballot(const unsigned char *votes, unsigned active) {
  unsigned result = 0;
  for (unsigned i = 0; i < width; i++) result |= static_cast<unsigned>(votes[i] & 1u) << i;
  return result & active;
}

} // namespace mps_lanes

/* MPS_COLLECTIVE_...(suffix, T) defines what a call by value does over arrays, and declares that call if MPS_COLLECTIVE_DECLARE says how. */
#ifndef MPS_COLLECTIVE_FUNCTION /* what nobody calls is not compiled */
#define MPS_COLLECTIVE_FUNCTION extern "C" __attribute__((visibility("hidden"))) inline
#endif
#ifndef MPS_COLLECTIVE_DECLARE /* kernels/include declares the calls by value */
#define MPS_COLLECTIVE_DECLARE(declaration)
#endif

#define MPS_COLLECTIVE_REDUCTION(name, operation, suffix, T, H)                                                \
  MPS_COLLECTIVE_DECLARE(T mps_collective_##name##_##suffix(T value))                                             \
  MPS_COLLECTIVE_FUNCTION void mps_lanes_##name##_##suffix(const T *values, T *results, unsigned active) {      \
    mps_lanes::reduce<mps_lanes::operation, 32, H>(values, results, active);                                 \
  }                                                                                                          \
  MPS_COLLECTIVE_DECLARE(T mps_collective_quad_##name##_##suffix(T value))                                        \
  MPS_COLLECTIVE_FUNCTION void mps_lanes_quad_##name##_##suffix(const T *values, T *results, unsigned active) { \
    mps_lanes::reduce<mps_lanes::operation, 4, H>(values, results, active);                                  \
  }
#define MPS_COLLECTIVE_PREFIX(name, operation, inclusive, suffix, T)                                          \
  MPS_COLLECTIVE_DECLARE(T mps_collective_##name##_##suffix(T value))                                            \
  MPS_COLLECTIVE_FUNCTION void mps_lanes_##name##_##suffix(const T *values, T *results, unsigned active) {     \
    mps_lanes::prefix<mps_lanes::operation, inclusive>(values, results, active);                            \
  }
#define MPS_COLLECTIVE_ARITHMETIC(suffix, T)                                             \
  MPS_COLLECTIVE_REDUCTION(sum, sum, suffix, T, mps_lanes::held<T>::type)                \
  MPS_COLLECTIVE_REDUCTION(product, product, suffix, T, mps_lanes::held<T>::type)        \
  MPS_COLLECTIVE_REDUCTION(min, smallest, suffix, T, T)                                  \
  MPS_COLLECTIVE_REDUCTION(max, largest, suffix, T, T)                                   \
  MPS_COLLECTIVE_PREFIX(prefix_inclusive_sum, sum, true, suffix, T)                      \
  MPS_COLLECTIVE_PREFIX(prefix_exclusive_sum, sum, false, suffix, T)                     \
  MPS_COLLECTIVE_PREFIX(prefix_inclusive_product, product, true, suffix, T)              \
  MPS_COLLECTIVE_PREFIX(prefix_exclusive_product, product, false, suffix, T)
#define MPS_COLLECTIVE_BITS(suffix, T)                       \
  MPS_COLLECTIVE_REDUCTION(and, all_bits, suffix, T, T)      \
  MPS_COLLECTIVE_REDUCTION(or, any_bit, suffix, T, T)        \
  MPS_COLLECTIVE_REDUCTION(xor, odd_bits, suffix, T, T)
#define MPS_COLLECTIVE_SHUFFLE(suffix, T)                                                                                         \
  MPS_COLLECTIVE_DECLARE(T mps_collective_shuffle_##suffix(T value, unsigned lane))                                                  \
  MPS_COLLECTIVE_FUNCTION void mps_lanes_shuffle_##suffix(const T *values, const unsigned *lanes, T *results, unsigned active) {   \
    mps_lanes::shuffle(values, lanes, results, active);                                                                         \
  }
/* Two floats in each unsigned long. */
#define MPS_COLLECTIVE_MATRIX()                                                                                                     \
  MPS_COLLECTIVE_DECLARE(unsigned long mps_collective_matrix(unsigned long a, unsigned long b, unsigned long c))                       \
  MPS_COLLECTIVE_FUNCTION void mps_lanes_matrix(const float *a, const float *b, const float *c, float *results, unsigned active) {   \
    mps_lanes::multiply_matrices(a, b, c, results, active);                                                                       \
  }
#define MPS_COLLECTIVE_BALLOT()                                                                                          \
  MPS_COLLECTIVE_DECLARE(unsigned mps_collective_ballot(bool vote))                                                         \
  MPS_COLLECTIVE_FUNCTION void mps_lanes_ballot(const unsigned char *votes, unsigned *results, unsigned active) {         \
    const unsigned all = mps_lanes::ballot(votes, active);                                                               \
    mps_lanes::give(results, active, [=](unsigned) { return all; });                                                     \
  }

/* Around a loop in which lanes meet; `name` is a constant. */
MPS_COLLECTIVE_DECLARE(void mps_collective_loop_enter(unsigned name))
MPS_COLLECTIVE_DECLARE(void mps_collective_loop_next(unsigned name))
MPS_COLLECTIVE_DECLARE(void mps_collective_loop_leave(unsigned name))
MPS_COLLECTIVE_DECLARE(void mps_collective_barrier(unsigned flags))
MPS_COLLECTIVE_DECLARE(void mps_collective_simdgroup_barrier(unsigned flags))

#endif
