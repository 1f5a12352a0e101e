// SPDX-License-Identifier: BSD-3-Clause
#include "formulas_gamma.h"

INSTANCE_2(standard_gamma_grad, f32, float)
INSTANCE_3(dirichlet_grad, f32, float)
