/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random: kernels of the random family that make their results, and those that are compositions of others.
 */
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include "bridge/convert.h"
#include "bridge/kernels/random.h"
#include "openmps/ops/random.h"

namespace openmps::native {
namespace {

using Generator = std::optional<at::Generator>;

// Standard normals scaled by std and shifted by mean, each a number or a tensor.
template <class Mean, class Std>
at::Tensor &scaled_normal(at::Tensor &out, const Mean &mean, const Std &std, const Generator &generator) {
  out.normal_(0.0, 1.0, generator);
  return out.mul_(std).add_(mean);
}

void check_std(double std) { TORCH_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std); }
void check_std(const at::Tensor &std) {
  TORCH_CHECK(!std.is_complex(), "normal expects standard deviation to be non-complex");
  TORCH_CHECK(std.numel() == 0 || std.min().ge(0).item<bool>(), "normal expects all elements of std >= 0.0");
}

template <class Mean, class Std>
at::Tensor &normal_into(at::IntArrayRef sizes, const Mean &mean, const Std &std, const Generator &generator, at::Tensor &out) {
  check_std(std);
  at::native::resize_output(out, sizes);
  return scaled_normal(out, mean, std, generator);
}

at::Tensor like(at::IntArrayRef sizes, const at::Tensor &model) { return empty(sizes, model.options()); }

// Which samples, without replacement: the n largest of weight / exponential. (Efraimidis and Spirakis, 2006.)
at::Tensor without_replacement(const at::Tensor &weights, int64_t samples, const Generator &generator) {
  const at::Tensor keys = at::empty_like(weights, at::MemoryFormat::Contiguous).exponential_(1.0, generator);
  at::div_out(const_cast<at::Tensor &>(keys), weights, keys);
  if (samples == 1) return keys.argmax(-1, true);
  return std::get<1>(keys.topk(samples));
}

void check_multinomial(const at::Tensor &self, int64_t samples, bool replacement) {
  TORCH_CHECK(self.dim() > 0 && self.dim() <= 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(samples > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(replacement || samples <= self.size(-1), "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  // Floats count up to 2^24 without gaps: more categories could not all be reached.
  TORCH_CHECK(self.size(-1) <= (1 << 24), "number of categories cannot exceed 2^24");
}

}  // namespace

at::Tensor &normal_out(const at::Tensor &mean, double std, Generator generator, at::Tensor &out) {
  return normal_into(mean.sizes(), mean, std, generator, out);
}
at::Tensor normal(const at::Tensor &mean, double std, Generator generator) {
  at::Tensor out = like(mean.sizes(), mean);
  return normal_into(mean.sizes(), mean, std, generator, out);
}
at::Tensor &normal_out(double mean, const at::Tensor &std, Generator generator, at::Tensor &out) {
  return normal_into(std.sizes(), mean, std, generator, out);
}
at::Tensor normal(double mean, const at::Tensor &std, Generator generator) {
  at::Tensor out = like(std.sizes(), std);
  return normal_into(std.sizes(), mean, std, generator, out);
}
at::Tensor &normal_out(const at::Tensor &mean, const at::Tensor &std, Generator generator, at::Tensor &out) {
  return normal_into(at::infer_size(mean.sizes(), std.sizes()), mean, std, generator, out);
}
at::Tensor normal(const at::Tensor &mean, const at::Tensor &std, Generator generator) {
  const auto sizes = at::infer_size(mean.sizes(), std.sizes());
  at::Tensor out = like(sizes, mean);
  return normal_into(sizes, mean, std, generator, out);
}

at::Tensor &bernoulli_(at::Tensor &self, const at::Tensor &p, Generator generator) {
  at::assert_no_internal_overlap(self);
  if (self.numel() == 0) return self;
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(p.scalar_type()), "\"bernoulli_tensor_cpu_p_\" not implemented for '", p.scalar_type(), "'");
  const at::Tensor expanded = (p.is_cpu() ? p.to(self.device()) : p).expand(self.sizes());
  const Operand p_(expanded, Operand::plain), self_(self, Operand::output);
  check(mps_op_bernoulli_each(stream(), p_.pointer(), openmps::generator(generator), self_.pointer()));
  return self;
}

at::Tensor &bernoulli_(at::Tensor &self, double p, Generator generator) {
  at::assert_no_internal_overlap(self);
  const Operand self_(self, Operand::output);
  check(mps_op_bernoulli(stream(), p, openmps::generator(generator), self_.pointer()));
  return self;
}

at::Tensor &bernoulli_out(const at::Tensor &self, Generator generator, at::Tensor &out) {
  at::native::resize_output(out, self.sizes());
  return out.bernoulli_(self, generator);
}

at::Tensor &randperm_out_mps(int64_t n, Generator generator, at::Tensor &out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  TORCH_CHECK(!generator.has_value() || generator->device() == out.device(), "Expected a '", out.device(), "' generator device but found '",
              generator->device(), "'");
  at::native::resize_output(out, {n});
  const Operand out_(out, Operand::output);
  check(mps_op_randperm(stream(), openmps::generator(generator), out_.pointer()));
  return out;
}

at::Tensor &multinomial_out(const at::Tensor &self, int64_t samples, bool replacement, Generator generator, at::Tensor &out) {
  TORCH_CHECK(out.scalar_type() == at::kLong, "multinomial expects Long tensor out, got: ", out.scalar_type());
  check_multinomial(self, samples, replacement);
  at::DimVector sizes{samples};
  if (self.dim() == 2) sizes.insert(sizes.begin(), self.size(0));
  at::native::resize_output(out, sizes);
  if (out.numel() == 0) return out;
  if (!replacement || samples == 1) {
    // The checks of the weights are the sampling kernel's, which is skipped here.
    const bool valid = self.max().lt(INFINITY).logical_and(self.min().ge(0)).item<bool>();
    TORCH_CHECK(valid, "probability tensor contains either `inf`, `nan` or element < 0");
    const bool positive = self.dim() == 1 ? self.sum().gt(0).item<bool>() : self.sum(1).gt(0).all().item<bool>();
    TORCH_CHECK(positive, "invalid multinomial distribution (sum of probabilities <= 0)");
    return out.copy_(without_replacement(self, samples, generator));
  }
  const at::Tensor rows = self.dim() == 1 ? self.unsqueeze(0) : self;
  const at::Tensor picked = empty({rows.size(0), samples}, out.options());
  const Operand rows_(rows, Operand::plain), picked_(picked, Operand::output);
  check(mps_op_multinomial(stream(), rows_.pointer(), openmps::generator(generator), picked_.pointer()));
  return out.copy_(picked.view(sizes));
}

at::Tensor multinomial(const at::Tensor &self, int64_t samples, bool replacement, Generator generator) {
  at::Tensor out = empty({0}, self.options().dtype(at::kLong));
  return multinomial_out(self, samples, replacement, std::move(generator), out);
}

std::tuple<at::Tensor, at::Tensor> native_dropout_mps(const at::Tensor &input, double p, std::optional<bool> train) {
  TORCH_CHECK(at::isFloatingType(input.scalar_type()) || input.is_complex(), "native_dropout_mps: input must be a floating-point or complex tensor, got ",
              input.scalar_type());
  if (!train.value_or(true) || input.numel() == 0)
    return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  const at::Tensor mask = empty(input.sizes(), input.options().dtype(at::kBool));
  if (input.is_complex()) {
    mask.bernoulli_(1.0 - p);
    return {p == 1.0 ? at::zeros_like(input) : input.mul(mask).div(1.0 - p), mask};
  }
  const at::Tensor out = empty(input.sizes(), input.options());
  const Operand input_(input, Operand::plain), out_(out, Operand::output), mask_(mask, Operand::output);
  check(mps_op_dropout(stream(), input_.pointer(), p, openmps::generator(std::nullopt), out_.pointer(), mask_.pointer()));
  return {out, mask};
}

}  // namespace openmps::native
