// SPDX-License-Identifier: BSD-3-Clause
//
// formulas_gamma: how samples of gamma, beta and Dirichlet distributions move with the parameters: -(d cdf / d alpha) / pdf, by PyTorch's
// approximations (ATen/native/Distributions.h), arranged so that floats neither overflow nor cancel.
#ifndef OPENMPS_KERNELS_FORMULAS_GAMMA_H
#define OPENMPS_KERNELS_FORMULAS_GAMMA_H

#include "formulas.h"
#include "special_elementary.h"
#include "special_gamma.h"

namespace formula {

// Around x = 0, by a Taylor series: pow(x, alpha) cancels out of the quotient, and 1 / alpha^2 out of the difference.
METAL_FUNC float gamma_gradient_small(float alpha, float x) {
  const float factor = metal::log(x) - special::digamma(1.0f + alpha);
  float term = 1.0f, sum = 1.0f / alpha, difference = 0.0f;
  for (int i = 1; i <= 5; i++) {
    const float at = alpha + float(i);
    term *= -x / float(i);
    sum += term / at;
    difference += term * float(i) / (alpha * at * at);
  }
  const float result = -x * metal::exp(x) * (factor * sum + difference);
  return result != result ? 0.0f : result;
}

// Rice's saddle point expansion for large alpha; d = x / alpha - 1.
METAL_FUNC float gamma_gradient_large(float alpha, float x) {
  const float r = x / alpha, d = (x - alpha) / alpha;
  const float i = 1.0f / alpha, near = (i * i + 24.0f * (i + 12.0f)) *
                                       (1440.0f + 6.0f * r * (53.0f * i - 120.0f * r) - 65.0f * r * r * i + (107.0f * i + 3600.0f * r)) / 1244160.0f;
  const float scale = metal::sqrt(8.0f * alpha), logarithm = special::log1p(d);
  const float second = scale / (alpha - x);
  const float third = metal::rsqrt(alpha * special::excess(x, alpha));
  const float both = x < alpha ? second - third * third * third : second + third * third * third;
  const float first = logarithm * both - metal::sqrt(2.0f / alpha) * (2.0f + d) / (alpha * d * d);
  const float stirling = 1.0f + 1.0f / (12.0f * alpha) * (1.0f + 1.0f / (24.0f * alpha));
  return 0.9f * alpha <= x && x <= 1.1f * alpha ? near : -stirling * x * first / scale;
}

// A rational approximation in log(x / alpha) and log(alpha).
METAL_FUNC float gamma_gradient_middle(float alpha, float x) {
  const float u = metal::log(x / alpha), v = metal::log(alpha);
  const float p0 = 0.16009398f + u * (0.53487893f + u * 0.040121004f), p1 = -0.094634809f + u * (0.1298071f + u * -0.0065914022f);
  const float p2 = 0.025146376f + u * (0.065735949f + u * -0.0026286047f), p3 = -0.0030648343f + u * (-0.0015649758f + u * -0.0013441777f);
  const float q0 = 1.0f + u * (0.16639465f + u * 0.017050642f), q1 = 0.32668115f + u * (0.020070113f + u * -0.0021309326f);
  const float q2 = 0.10406089f + u * (-0.0035938915f + u * 0.00085092367f), q3 = 0.0014179084f + u * (-0.00058392623f + u * -1.5247877e-07f);
  return metal::exp((p0 + v * (p1 + v * (p2 + v * p3))) / (q0 + v * (q1 + v * (q2 + v * q3))));
}

struct standard_gamma_grad {
  METAL_FUNC float operator()(float alpha, float x) const {
    // All three, without branches, for sixteen elements at a time are faster than one for each.
    const float small = gamma_gradient_small(alpha, x), large = gamma_gradient_large(alpha, x), middle = gamma_gradient_middle(alpha, x);
    return x < 0.8f ? small : alpha > 8.0f ? large : middle;
  }
};

// Beta(x, alpha, beta) with respect to alpha, for x near 0.
METAL_FUNC float beta_gradient_alpha_small(float x, float alpha, float beta) {
  // The series over (factor + 1 / alpha) is arranged as in gamma_gradient_small: digamma(alpha) = digamma(alpha + 1) - 1 / alpha.
  const float rest = special::digamma(alpha + 1.0f) - special::digamma(alpha + beta) - metal::log(x), inverse = 1.0f / alpha;
  float numerator = 1.0f, series = inverse * rest;
  for (int i = 1; i <= 10; i++) {
    numerator *= (float(i) - beta) * x / float(i);
    const float denominator = alpha + float(i);
    series += numerator / denominator * (rest - float(i) * inverse / denominator);
  }
  const float result = x * metal::exp(-beta * special::log1p(-x)) * series;
  return result != result ? 0.0f : result;
}

// With respect to beta, for x near 0.
METAL_FUNC float beta_gradient_beta_small(float x, float alpha, float beta) {
  const float factor = special::digamma(alpha + beta) - special::digamma(beta);
  float numerator = 1.0f, betas = 1.0f, slopes = 0.0f, series = factor / alpha;
  for (int i = 1; i <= 8; i++) {
    numerator *= -x / float(i);
    slopes = slopes * (beta - float(i)) + betas;
    betas *= beta - float(i);
    series += numerator / (alpha + float(i)) * (slopes + factor * betas);
  }
  const float result = -metal::exp((1.0f - beta) * special::log1p(-x)) * series;
  return result != result ? 0.0f : result;
}

// With respect to alpha, for large alpha and beta: Rice's saddle point expansion.
METAL_FUNC float beta_gradient_alpha_middle(float x, float alpha, float beta) {
  const float total = alpha + beta, mean = alpha / total, y = 1.0f - x;
  const float deviation = metal::sqrt(mean * (beta / (total + 1.0f)));
  const float r = alpha / beta, i = 1.0f / beta;
  const float polynomial =
      47.0f * x * i + r * ((43.0f * i + 20.0f * (16.0f * i + 27.0f) * x) +
                           r * (3.0f * (59.0f * i + 180.0f - 90.0f * x * i) +
                                r * ((453.0f * i + 1620.0f * y - 455.0f * x * i) + r * (8.0f * y * (135.0f - 11.0f * i)))));
  const float near = ((1.0f + 12.0f * alpha) / total) * ((1.0f + 12.0f * beta) / total) / y * polynomial / (12960.0f * r * r * r * (1.0f + 12.0f * total));
  const float prefactor = -x / metal::sqrt(2.0f * alpha * (beta / total));
  const float stirling = (1.0f + 1.0f / (12.0f * alpha) + 1.0f / (288.0f * alpha * alpha)) * (1.0f + 1.0f / (12.0f * beta) + 1.0f / (288.0f * beta * beta)) /
                         (1.0f + 1.0f / (12.0f * total) + 1.0f / (288.0f * total * total));
  // d = total x - alpha, with the rounding of the sum made good.
  const float lost = (alpha - (total - (total - alpha))) + (beta - (total - alpha));
  const float d = metal::fma(total, x, -alpha) + lost * x;
  const float first = (2.0f * alpha * alpha * -y + alpha * beta * -y - x * beta * beta) / (metal::sqrt(2.0f * alpha / beta) * total * metal::sqrt(total) * d * d);
  const float second = 0.5f * metal::log(alpha / (total * x));
  const float third = metal::sqrt(8.0f * alpha * (beta / total)) / d;
  const float base = alpha * special::excess(total * x, alpha) + beta * special::excess(total * y, beta);
  const float root = metal::rsqrt(base), fourth = root * root * root;
  const float far = stirling * prefactor * (first + second * (third + (x < mean ? fourth : -fourth)));
  return mean - 0.1f * deviation <= x && x <= mean + 0.1f * deviation ? near : far;
}

// A rational correction to an analytic approximation; c[i][j] are polynomials in b, of powers i of u and j of a.
METAL_FUNC float beta_gradient_rational(float x, float alpha, float beta, float total) {
  const float c[2][9][4] = {{{1.003668233f, -0.01061107488f, -0.0657888334f, 0.01201642863f},
                             {0.6336835991f, -0.3557432599f, 0.05486251648f, -0.001465281033f},
                             {-0.03276231906f, 0.004474107445f, 0.002429354597f, -0.0001557569013f},
                             {0.221950385f, -0.3187676331f, 0.01799915743f, 0.01074823814f},
                             {-0.2951249643f, 0.06219954479f, 0.01535556598f, 0.001550077057f},
                             {0.02155310298f, 0.004170831599f, 0.001292462449f, 6.976601077e-05f},
                             {-0.05980841433f, 0.008441916499f, 0.01085618172f, 0.002319392565f},
                             {0.02911413504f, 0.01400243777f, -0.002721828457f, 0.000751041181f},
                             {0.005900514878f, -0.001936558688f, -9.495446725e-06f, 5.385558597e-05f}},
                            {{1.0f, -0.02924021934f, -0.04438342661f, 0.007285809825f},
                             {0.6357567472f, -0.3473456711f, 0.05454656494f, -0.002407477521f},
                             {-0.03301322327f, 0.004845219414f, 0.00231480583f, -0.0002307248149f},
                             {0.5925320577f, -0.1757678135f, 0.01505928619f, 0.000564515273f},
                             {0.1014815858f, -0.06589186703f, 0.01272886114f, -0.0007316646956f},
                             {-0.007258481865f, 0.001096195486f, 0.0003934994223f, -4.12701925e-05f},
                             {0.06469649321f, -0.0236701437f, 0.002902096474f, -5.896963079e-05f},
                             {0.001925008108f, -0.002869809258f, 0.0008000589141f, -6.063713228e-05f},
                             {-0.0003477407336f, 6.959756487e-05f, 1.097287507e-05f, -1.650964693e-06f}}};
  const float u = metal::log(x), a = metal::log(alpha) - u, b = metal::log(total) - a;
  const float powers_u[3] = {1.0f, u, u * u}, powers_a[3] = {1.0f, a, a * a};
  float sums[2] = {0.0f, 0.0f};
  for (int s = 0; s < 2; s++)
    for (int k = 0; k < 9; k++)
      sums[s] += powers_u[k / 3] * powers_a[k % 3] * (c[s][k][0] + b * (c[s][k][1] + b * (c[s][k][2] + b * c[s][k][3])));
  return sums[0] / sums[1] * (x * (special::digamma(total) - special::digamma(alpha)) / beta);
}

struct dirichlet_grad {
  METAL_FUNC float operator()(float x, float alpha, float total) const {
    const float beta = total - alpha, boundary = total * x * (1.0f - x);
    const float low = beta_gradient_alpha_small(x, alpha, beta), high = -beta_gradient_beta_small(1.0f - x, beta, alpha);
    const float middle = beta_gradient_alpha_middle(x, alpha, beta), rational = beta_gradient_rational(x, alpha, beta, total);
    const float rest = alpha > 6.0f && beta > 6.0f ? middle : rational;
    return x <= 0.5f && boundary < 2.5f ? low : x >= 0.5f && boundary < 0.75f ? high : rest;
  }
};

}  // namespace formula

#endif
