// SPDX-License-Identifier: BSD-3-Clause
#include "formulas_transcendental.h"

#define BOTH(instance, name) instance(name, f32, float) instance(name, c64, float2)

BOTH(INSTANCE_1, sin)
BOTH(INSTANCE_1, cos)
BOTH(INSTANCE_1, tan)
BOTH(INSTANCE_1, asin)
BOTH(INSTANCE_1, acos)
BOTH(INSTANCE_1, atan)
BOTH(INSTANCE_1, sinh)
BOTH(INSTANCE_1, cosh)
BOTH(INSTANCE_1, tanh)
BOTH(INSTANCE_1, asinh)
BOTH(INSTANCE_1, acosh)
BOTH(INSTANCE_1, atanh)
BOTH(INSTANCE_1, sinc)
INSTANCE_2(atan2, f32, float)
