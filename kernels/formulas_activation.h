// SPDX-License-Identifier: BSD-3-Clause
//
// formulas_activation: activation functions and their gradients, and the elements of losses. g is the gradient that comes in.
#ifndef OPENMPS_KERNELS_FORMULAS_ACTIVATION_H
#define OPENMPS_KERNELS_FORMULAS_ACTIVATION_H

#include "complex_functions.h"
#include "formulas.h"
#include "special_elementary.h"

namespace formula {

METAL_FUNC float logistic(float a) { return 1.0f / (1.0f + metal::exp(-a)); }
inline float2 complex_logistic(float2 a) { return complex_div(float2(1.0f, 0.0f), float2(1.0f, 0.0f) + complex_exp(-a)); }

struct relu {
  template <typename T> METAL_FUNC T operator()(T a) const { return a <= T(0) ? T(0) : a; }
};

// a > threshold ? a : value, and the gradient; NaN stays.
struct threshold {
  template <typename T> METAL_FUNC T operator()(T a, T limit, T value) const { return a <= limit ? value : a; }
};
struct threshold_backward {
  template <typename T> METAL_FUNC T operator()(T g, T a, T limit) const { return a <= limit ? T(0) : g; }
};

struct gelu {
  METAL_FUNC float operator()(float a) const { return 0.5f * a * (1.0f + special::erf(a * 0.707106781f)); }
};
struct gelu_backward {
  METAL_FUNC float operator()(float g, float a) const {
    float cumulative = 0.5f * (1.0f + special::erf(a * 0.707106781f));
    float density = 0.398942280f * metal::exp(-0.5f * a * a);
    return g * (cumulative + a * density);
  }
};
struct gelu_tanh {
  METAL_FUNC float operator()(float a) const {
    float inner = 0.797884561f * (a + 0.044715f * a * a * a);
    return 0.5f * a * (1.0f + metal::tanh(inner));
  }
};
struct gelu_tanh_backward {
  METAL_FUNC float operator()(float g, float a) const {
    float square = a * a;
    float t = metal::tanh(0.797884561f * (a + 0.044715f * square * a));
    float slope = 0.797884561f * (1.0f + 0.134145f * square);
    return g * (0.5f * (1.0f + t) + 0.5f * a * (1.0f - t * t) * slope);
  }
};

struct silu {
  METAL_FUNC float operator()(float a) const { return a / (1.0f + metal::exp(-a)); }
  float2 operator()(float2 a) const { return complex_mul(a, complex_logistic(a)); }
};
struct silu_backward {
  METAL_FUNC float operator()(float g, float a) const {
    float s = logistic(a);
    return g * s * (1.0f + a * (1.0f - s));
  }
  float2 operator()(float2 g, float2 a) const {
    float2 s = complex_logistic(a), one = float2(1.0f, 0.0f);
    float2 slope = complex_mul(s, one + complex_mul(a, one - s));
    return complex_mul(g, float2(slope.x, -slope.y));
  }
};

struct mish {
  METAL_FUNC float operator()(float a) const { return a * metal::tanh(special::log1p(metal::exp(a))); }
};
struct mish_backward {
  METAL_FUNC float operator()(float g, float a) const {
    float t = metal::tanh(special::log1p(metal::exp(a)));
    return g * (t + a * logistic(a) * (1.0f - t * t));
  }
};

// parameters: alpha * scale, scale, input_scale.
struct elu {
  METAL_FUNC float operator()(float a, constant float *p) const {
    float low = special::expm1(a * p[2]) * p[0];
    return a < 0.0f ? low : a * p[1];
  }
};
struct elu_backward {
  METAL_FUNC float operator()(float g, float a, constant float *p) const {
    return a <= 0.0f ? g * p[2] * p[0] * metal::exp(a * p[2]) : g * p[1];
  }
};
struct elu_backward_result {
  METAL_FUNC float operator()(float g, float a, constant float *p) const { return a <= 0.0f ? g * p[2] * (a + p[0]) : g * p[1]; }
};

struct hardshrink {
  METAL_FUNC float operator()(float a, constant float *p) const { return a >= -p[0] && a <= p[0] ? 0.0f : a; }
};
struct shrink_backward {
  METAL_FUNC float operator()(float g, float a, constant float *p) const { return a > p[0] || a < -p[0] ? g : 0.0f; }
};
struct softshrink {
  METAL_FUNC float operator()(float a, constant float *p) const { return a > p[0] ? a - p[0] : a < -p[0] ? a + p[0] : a * 0.0f; }
};

inline float relu6(float a) { return a <= 0.0f ? 0.0f : a > 6.0f ? 6.0f : a; }

struct hardsigmoid {
  METAL_FUNC float operator()(float a) const { return relu6(a + 3.0f) / 6.0f; }
};
struct hardsigmoid_backward {
  METAL_FUNC float operator()(float g, float a) const { return a > -3.0f && a < 3.0f ? g / 6.0f : 0.0f; }
};
struct hardswish {
  METAL_FUNC float operator()(float a) const { return a * relu6(a + 3.0f) / 6.0f; }
};
struct hardswish_backward {
  METAL_FUNC float operator()(float g, float a) const {
    float middle = g * (a / 3.0f + 0.5f);
    return a <= -3.0f ? 0.0f : a < 3.0f ? middle : g;
  }
};

// parameters: low, high.
struct hardtanh_backward {
  METAL_FUNC float operator()(float g, float a, constant float *p) const { return a > p[0] && a < p[1] ? g : 0.0f; }
};

struct leaky_relu {
  METAL_FUNC float operator()(float a, constant float *p) const { return a > 0.0f ? a : a * p[0]; }
};
struct leaky_relu_backward {
  METAL_FUNC float operator()(float g, float a, constant float *p) const { return a > 0.0f ? g : g * p[0]; }
};

struct log_sigmoid {
  METAL_FUNC float operator()(float a) const {
    float low = a < 0.0f || a != a ? a : 0.0f;
    return low - special::log1p(metal::exp(-metal::fabs(a)));
  }
};
// What PyTorch keeps for the backward pass on the CPU: exp(-|a|).
struct log_sigmoid_buffer {
  METAL_FUNC float operator()(float a) const { return metal::exp(-metal::fabs(a)); }
};
struct log_sigmoid_backward {
  METAL_FUNC float operator()(float g, float a) const {
    float z = metal::exp(-metal::fabs(a));
    float ratio = z / (1.0f + z);
    return a < 0.0f ? g * (1.0f - ratio) : g * ratio;
  }
};

// parameters: beta, threshold.
struct softplus {
  METAL_FUNC float operator()(float a, constant float *p) const {
    float scaled = a * p[0];
    float bent = special::log1p(metal::exp(scaled)) / p[0];
    return scaled > p[1] ? a : bent;
  }
};
struct softplus_backward {
  METAL_FUNC float operator()(float g, float a, constant float *p) const {
    float scaled = a * p[0];
    float z = metal::exp(scaled);
    return scaled > p[1] ? g : g * z / (z + 1.0f);
  }
};

struct prelu {
  METAL_FUNC float operator()(float a, float weight) const { return a > 0.0f ? a : weight * a; }
};
struct prelu_backward {
  METAL_FUNC float operator()(float g, float a, float weight) const { return a > 0.0f ? g : weight * g; }
};
struct prelu_weight_backward {
  METAL_FUNC float operator()(float g, float a) const { return a > 0.0f ? 0.0f : a * g; }
};

struct sigmoid_backward {
  METAL_FUNC float operator()(float g, float y) const { return g * (1.0f - y) * y; }
  float2 operator()(float2 g, float2 y) const {
    float2 slope = complex_mul(float2(1.0f - y.x, -y.y), y);
    return complex_mul(g, float2(slope.x, -slope.y));
  }
};
struct tanh_backward {
  METAL_FUNC float operator()(float g, float y) const { return g * (1.0f - y * y); }
  float2 operator()(float2 g, float2 y) const {
    float2 square = complex_mul(y, y);
    return complex_mul(g, float2(1.0f - square.x, square.y));
  }
};

// parameters[0]: eps; negative when absent.
struct logit {
  METAL_FUNC float operator()(float a, constant float *p) const {
    float high = 1.0f - p[0];
    float x = p[0] < 0.0f ? a : a < p[0] ? p[0] : a > high ? high : a;
    return metal::log(x / (1.0f - x));
  }
};
struct logit_backward {
  METAL_FUNC float operator()(float g, float a, constant float *p) const {
    float slope = g / (a * (1.0f - a));
    bool unbounded = p[0] < 0.0f;
    float low = unbounded ? 0.0f : p[0], high = unbounded ? 1.0f : 1.0f - p[0];
    bool inside = a >= low && a <= high;
    return inside ? slope : unbounded ? not_a_number() : 0.0f;
  }
};

// Gated linear unit: a and b are the halves.
struct glu {
  METAL_FUNC float operator()(float a, float b) const { return a * logistic(b); }
};
struct glu_backward_value {
  METAL_FUNC float operator()(float g, float b) const { return g * logistic(b); }
};
struct glu_backward_gate {
  METAL_FUNC float operator()(float g, float a, float b) const {
    float s = logistic(b);
    return g * a * s * (1.0f - s);
  }
};

struct scaled_mask {
  METAL_FUNC float operator()(float g, bool mask, constant float *p) const { return mask ? g * p[0] : g * 0.0f; }
};

// ---- elements of losses; the backward forms take the factor of the reduction as their last parameter ----
struct squared_difference {
  METAL_FUNC float operator()(float a, float b) const { return (a - b) * (a - b); }
};
struct squared_difference_backward {
  METAL_FUNC float operator()(float g, float a, float b, constant float *p) const { return p[0] * (a - b) * g; }
};
// parameters: beta.
struct smooth_l1 {
  METAL_FUNC float operator()(float a, float b, constant float *p) const {
    float z = metal::fabs(a - b);
    return z < p[0] ? 0.5f * z * z / p[0] : z - 0.5f * p[0];
  }
};
struct smooth_l1_backward {
  METAL_FUNC float operator()(float g, float a, float b, constant float *p) const {
    float x = a - b;
    return x <= -p[0] ? -p[1] * g : x >= p[0] ? p[1] * g : p[1] * x * g / p[0];
  }
};
// parameters: delta.
struct huber {
  METAL_FUNC float operator()(float a, float b, constant float *p) const {
    float z = metal::fabs(a - b);
    return z <= p[0] ? 0.5f * z * z : p[0] * (z - 0.5f * p[0]);
  }
};
struct huber_backward {
  METAL_FUNC float operator()(float g, float a, float b, constant float *p) const {
    float x = a - b;
    return x < -p[0] ? -p[1] * g * p[0] : x > p[0] ? p[1] * g * p[0] : p[1] * x * g;
  }
};
// Logarithms are bounded by -100, as in PyTorch.
struct binary_cross_entropy {
  METAL_FUNC float operator()(float a, float target) const {
    float yes = metal::log(a), no = special::log1p(-a);
    yes = yes < -100.0f ? -100.0f : yes;
    no = no < -100.0f ? -100.0f : no;
    return (target - 1.0f) * no - target * yes;
  }
};
struct binary_cross_entropy_backward {
  METAL_FUNC float operator()(float g, float a, float target, constant float *p) const {
    float slope = (1.0f - a) * a;
    return p[0] * g * (a - target) / (slope < 1.0e-12f ? 1.0e-12f : slope);
  }
};

}  // namespace formula

#endif
