/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attention: scaled_dot_product_attention out of matrix products and a softmax. In a stock wheel the composite asks a stub that no
 * backend but the built-in ones can fill, so that the operator itself is registered, for AutogradMPS too: autograd sees its parts.
 */
#include <ATen/ATen.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/library.h>

#include <cmath>

#include "bridge/convert.h"
#include "bridge/kernels/attention.h"
#include "openmps/ops/attention.h"

namespace openmps::native {
namespace {

void check_inputs(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value, const std::optional<at::Tensor> &mask) {
  TORCH_CHECK(query.scalar_type() == key.scalar_type() && query.scalar_type() == value.scalar_type(),
              "Expected query, key, and value to have the same dtype, but got query.dtype: ", query.dtype(), " key.dtype: ", key.dtype(),
              " and value.dtype: ", value.dtype(), " instead.");
  TORCH_CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: ",
              query.dim(), " key.dim: ", key.dim(), " and value.dim: ", value.dim(), " instead.");
  TORCH_CHECK(at::isFloatingType(query.scalar_type()), "scaled_dot_product_attention for MPS does not support dtype ", query.scalar_type());
  if (!mask.has_value() || !mask->defined()) return;
  TORCH_CHECK(mask->scalar_type() == at::kBool || mask->scalar_type() == at::kFloat || mask->scalar_type() == query.scalar_type(),
              "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ", mask->dtype(), " and  query.dtype: ",
              query.dtype(), " instead.");
}

// Each key and value head serves several query heads.
at::Tensor repeated(const at::Tensor &tensor, int64_t heads, bool enable_gqa) {
  if (!enable_gqa || tensor.dim() < 3 || tensor.size(-3) == heads) return tensor;
  TORCH_CHECK(tensor.size(-3) > 0 && heads % tensor.size(-3) == 0, "Number of heads in key and value must divide the number of heads in query");
  return tensor.repeat_interleave(heads / tensor.size(-3), -3);
}

std::tuple<at::Tensor, at::Tensor> attention(const at::Tensor &query, const at::Tensor &key_, const at::Tensor &value_, const std::optional<at::Tensor> &mask,
                                             double dropout, bool is_causal, const std::optional<at::Tensor> &dropout_mask, std::optional<double> scale,
                                             bool enable_gqa) {
  check_inputs(query, key_, value_, mask);
  const int64_t heads = query.dim() >= 3 ? query.size(-3) : 1;
  const at::Tensor key = repeated(key_, heads, enable_gqa), value = repeated(value_, heads, enable_gqa);
  const double factor = scale.has_value() ? *scale : 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
  // Half of the factor on each side, so that float16 products stay in range.
  const double root = std::sqrt(std::abs(factor));
  at::Tensor scores = at::matmul(query * (factor < 0 ? -root : root), (key * root).transpose(-2, -1));
  const bool masked = mask.has_value() && mask->defined();
  if (masked && mask->scalar_type() == at::kBool)
    scores = scores.masked_fill(mask->logical_not(), -INFINITY);
  else if (masked)
    scores = scores + mask->to(scores.scalar_type());
  if (is_causal) {
    const at::Tensor visible = at::ones({query.size(-2), key.size(-2)}, query.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(visible.logical_not(), -INFINITY);
  }
  at::Tensor weights = masked ? at::_safe_softmax(scores, -1) : at::softmax(scores, -1);
  if (dropout_mask.has_value() && dropout_mask->defined()) {
    const at::Tensor kept = weights.masked_fill(dropout_mask->logical_not(), 0.0);
    return {at::matmul(kept, value * (1.0 / (1.0 - dropout))), weights};
  }
  if (dropout > 0.0) weights = at::dropout(weights, dropout, true);
  return {at::matmul(weights, value), weights};
}

// ---- without gradients: one C operator ----

bool wants_gradient(const at::Tensor &t) { return at::GradMode::is_enabled() && t.requires_grad(); }

// (batch, heads, rows, depth), or undefined where the leading dimensions are others.
at::Tensor four_dimensional(const at::Tensor &t) { return t.dim() == 4 ? t : t.dim() == 3 ? t.unsqueeze(0) : t.dim() == 2 ? t.unsqueeze(0).unsqueeze(0) : at::Tensor(); }

// Where one step a batch item would cost more than a copy.
bool is_small(const at::Tensor &query, const at::Tensor &key) {
  return query.size(0) > 1 && query.size(1) * query.size(2) * key.size(2) < 16384;
}

// Undefined where the operator does not apply: broadcast batches, gradients, dropout.
at::Tensor fused(const at::Tensor &query_, const at::Tensor &key_, const at::Tensor &value_, const std::optional<at::Tensor> &mask_, double dropout,
                 bool is_causal, std::optional<double> scale, bool enable_gqa) {
  const bool masked = mask_.has_value() && mask_->defined();
  if (dropout > 0.0 || query_.dim() != key_.dim() || query_.dim() != value_.dim() || query_.dim() > 4) return {};
  if (wants_gradient(query_) || wants_gradient(key_) || wants_gradient(value_) || (masked && wants_gradient(*mask_))) return {};
  if (!query_.is_mps() || !key_.is_mps() || !value_.is_mps() || (masked && !mask_->is_mps())) return {};
  at::Tensor query = four_dimensional(query_), key = four_dimensional(key_), value = four_dimensional(value_);
  const bool heads_fit = query.size(1) == key.size(1) || (enable_gqa && key.size(1) > 0 && query.size(1) % key.size(1) == 0);
  if (!heads_fit || key.size(1) != value.size(1) || query.size(0) != key.size(0) || query.size(0) != value.size(0) || query.size(3) != key.size(3) ||
      key.size(2) != value.size(2))
    return {};
  at::Tensor mask;
  if (masked) mask = mask_->expand({query.size(0), query.size(1), query.size(2), key.size(2)});
  if (is_small(query, key)) {
    query = query.contiguous();
    key = key.contiguous();
    value = value.contiguous();
  }
  at::DimVector sizes(query.sizes());
  sizes[3] = value.size(3);
  // As on the CPU, the result lies as the query does, so that joining the heads again needs no copy.
  const bool heads_inside = query_.dim() == 4 && query_.stride(1) < query_.stride(2);
  at::Tensor out = heads_inside ? empty({sizes[0], sizes[2], sizes[1], sizes[3]}, query.options()).transpose(1, 2) : empty(sizes, query.options());
  const double factor = scale.has_value() ? *scale : 1.0 / std::sqrt(static_cast<double>(query.size(3)));
  {
    const Operand q(query, Operand::plain), k(key, Operand::plain), v(value, Operand::plain), m(mask, Operand::plain), o(out, Operand::output);
    check(mps_op_attention(stream(), q.pointer(), k.pointer(), v.pointer(), m.pointer_or_null(), is_causal, factor, o.pointer()));
  }
  for (int64_t d = query_.dim(); d < 4; d++) out = out.squeeze(0);
  return out;
}

// ---- tracing ----

// Fake tensors (torch.compile, torch.export), other subclasses and dispatch modes: they see operators below autograd, and have no memory.
bool is_traced(const at::Tensor &t) {
  return t.key_set().has_any(c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::Functionalize}));
}

// What upstream's composite calls. Sizes may be symbols, so that nothing here asks for them.
at::Tensor traced(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value, const std::optional<at::Tensor> &mask, double dropout, bool is_causal,
                  std::optional<double> scale, bool enable_gqa) {
  const bool masked = mask.has_value() && mask->defined();
  const bool gradient = wants_gradient(query) || wants_gradient(key) || wants_gradient(value) || (masked && wants_gradient(*mask));
  if (!gradient && query.dim() == key.dim() && query.dim() == value.dim() && (query.dim() == 3 || query.dim() == 4))
    return std::get<0>(at::_scaled_dot_product_attention_math_for_mps(query, key, value, mask, dropout, is_causal, std::nullopt, scale, enable_gqa));
  std::optional<at::Tensor> added = mask;  // that operator takes no mask of bools
  if (masked && mask->scalar_type() == at::kBool) added = at::where(*mask, 0.0, -INFINITY).to(query.scalar_type());
  return std::get<0>(at::_scaled_dot_product_attention_math(query, key, value, added, dropout, is_causal, std::nullopt, scale, enable_gqa));
}

at::Tensor scaled_dot_product_attention(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value, const std::optional<at::Tensor> &attn_mask,
                                        double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa) {
  TORCH_CHECK(dropout_p >= 0.0 && dropout_p <= 1.0, "dropout probability has to be between 0 and 1, but got ", dropout_p);
  check_inputs(query, key, value, attn_mask);
  if (is_traced(query) || is_traced(key) || is_traced(value) || c10::impl::TorchDispatchModeTLS::any_modes_set())
    return traced(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa);
  at::Tensor out = fused(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa);
  if (out.defined()) return out;
  return std::get<0>(attention(query, key, value, attn_mask, dropout_p, is_causal, std::nullopt, scale, enable_gqa));
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> _scaled_dot_product_attention_math_mps(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value,
                                                                         const std::optional<at::Tensor> &attn_mask, double dropout_p, bool is_causal,
                                                                         const std::optional<at::Tensor> &dropout_mask, std::optional<double> scale,
                                                                         bool enable_gqa) {
  return attention(query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale, enable_gqa);
}

TORCH_LIBRARY_IMPL(aten, MPS, m) { m.impl("scaled_dot_product_attention", TORCH_FN(scaled_dot_product_attention)); }
TORCH_LIBRARY_IMPL(aten, AutogradMPS, m) { m.impl("scaled_dot_product_attention", TORCH_FN(scaled_dot_product_attention)); }

}  // namespace openmps::native
