// SPDX-License-Identifier: BSD-3-Clause
//
// formulas_special: the functions of torch.special.
#ifndef OPENMPS_KERNELS_FORMULAS_SPECIAL_H
#define OPENMPS_KERNELS_FORMULAS_SPECIAL_H

#include "formulas.h"
#include "special_airy.h"
#include "special_bessel.h"
#include "special_elementary.h"
#include "special_gamma.h"
#include "special_polynomial.h"

namespace formula {

#define SPECIAL_1(name, function)                                   \
  struct name {                                                     \
    METAL_FUNC float operator()(float a) const { return special::function(a); } \
  };
#define SPECIAL_2(name, function)                                               \
  struct name {                                                                 \
    float operator()(float a, float b) const { return special::function(a, b); } \
  };

SPECIAL_1(erf, erf)
SPECIAL_1(erfc, erfc)
SPECIAL_1(erfinv, erfinv)
SPECIAL_1(special_erfcx, erfcx)
SPECIAL_1(special_ndtri, ndtri)
SPECIAL_1(special_log_ndtr, log_ndtr)
SPECIAL_1(lgamma, lgamma)
SPECIAL_1(digamma, digamma)
SPECIAL_1(trigamma, trigamma)
SPECIAL_1(i0, i0)
SPECIAL_1(special_i0e, i0e)
SPECIAL_1(special_i1, i1)
SPECIAL_1(special_i1e, i1e)
SPECIAL_1(special_bessel_j0, bessel_j0)
SPECIAL_1(special_bessel_j1, bessel_j1)
SPECIAL_1(special_bessel_y0, bessel_y0)
SPECIAL_1(special_bessel_y1, bessel_y1)
SPECIAL_1(special_modified_bessel_k0, k0)
SPECIAL_1(special_modified_bessel_k1, k1)
SPECIAL_1(special_scaled_modified_bessel_k0, k0e)
SPECIAL_1(special_scaled_modified_bessel_k1, k1e)
SPECIAL_1(special_spherical_bessel_j0, spherical_j0)
SPECIAL_1(special_airy_ai, airy_ai)
SPECIAL_2(special_zeta, zeta)
SPECIAL_2(igamma, igamma)
SPECIAL_2(igammac, igammac)
SPECIAL_2(special_chebyshev_polynomial_t, chebyshev_t)
SPECIAL_2(special_chebyshev_polynomial_u, chebyshev_u)
SPECIAL_2(special_chebyshev_polynomial_v, chebyshev_v)
SPECIAL_2(special_chebyshev_polynomial_w, chebyshev_w)
SPECIAL_2(special_hermite_polynomial_h, hermite_h)
SPECIAL_2(special_hermite_polynomial_he, hermite_he)
SPECIAL_2(special_laguerre_polynomial_l, laguerre_l)
SPECIAL_2(special_legendre_polynomial_p, legendre_p)

struct special_shifted_chebyshev_polynomial_t {
  float operator()(float x, float n) const { return special::chebyshev_t((x + x) - 1.0f, n); }
};
struct special_shifted_chebyshev_polynomial_u {
  float operator()(float x, float n) const { return special::chebyshev_u((x + x) - 1.0f, n); }
};
struct special_shifted_chebyshev_polynomial_v {
  float operator()(float x, float n) const { return special::chebyshev_v((x + x) - 1.0f, n); }
};
struct special_shifted_chebyshev_polynomial_w {
  float operator()(float x, float n) const { return special::chebyshev_w((x + x) - 1.0f, n); }
};

// -a log(a).
struct special_entr {
  float operator()(float a) const {
    float inside = -a * metal::log(a);
    return a != a ? a : a > 0.0f ? inside : a == 0.0f ? 0.0f : -infinity();
  }
};

// psi^(n)(a) = (-1)^(n+1) n! zeta(n+1, a) for n >= 2. parameters: n + 1 and the factor.
struct polygamma {
  float operator()(float a, constant float *p) const { return p[1] * special::zeta(p[0], a); }
};

}  // namespace formula

#endif
