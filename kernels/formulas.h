// SPDX-License-Identifier: BSD-3-Clause
//
// formulas: what the formula headers share. A formula is a functor in namespace formula, named as its row in src/ops/table; its block
// kernels are `<formula>_<type>`. Types: float, int, long, ulong, float2 (complex), bool. Integers wrap: sums and products are taken
// unsigned, since overflow of signed integers is undefined.
#ifndef OPENMPS_KERNELS_FORMULAS_H
#define OPENMPS_KERNELS_FORMULAS_H

#include <metal_stdlib>
#include "pointwise_block.h"

using namespace metal;

// One line an instance: INSTANCE_1(exp, f32, float) makes exp_f32 with float operands and result.
#define INSTANCE_1(name, suffix, T) POINTWISE_UNARY(name##_##suffix, formula::name, T, T)
#define INSTANCE_2(name, suffix, T) POINTWISE_BINARY(name##_##suffix, formula::name, T, T, T)
#define INSTANCE_3(name, suffix, T) POINTWISE_TERNARY(name##_##suffix, formula::name, T, T, T, T)
#define INSTANCE_1_WITH(name, suffix, T) POINTWISE_UNARY_WITH(name##_##suffix, formula::name, T, T, T)
#define INSTANCE_2_WITH(name, suffix, T) POINTWISE_BINARY_WITH(name##_##suffix, formula::name, T, T, T, T)
#define INSTANCE_3_WITH(name, suffix, T) POINTWISE_TERNARY_WITH(name##_##suffix, formula::name, T, T, T, T, T)
#define INTEGERS(instance, name) instance(name, i32, int) instance(name, i64, long) instance(name, u64, ulong)
#define REALS(instance, name) instance(name, f32, float) INTEGERS(instance, name)

namespace formula {

inline float infinity() { return as_type<float>(0x7f800000u); }
inline float not_a_number() { return as_type<float>(0x7fc00000u); }
inline bool is_nan(float a) { return a != a; }

inline uint bits_of(int a) { return uint(a); }
inline ulong bits_of(long a) { return ulong(a); }
inline ulong bits_of(ulong a) { return a; }

}  // namespace formula

#endif
