/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gamma: gamma, Dirichlet, Poisson and binomial variables, and the gradients of the first two. Poisson and binomial have no entry for mps.
 */
#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <torch/library.h>

#include "bridge/convert.h"
#include "bridge/kernels/gamma.h"
#include "openmps/ops/gamma.h"

namespace openmps::native {
namespace {

using Generator = std::optional<at::Generator>;
using Sampler = mps_status (*)(mps_stream *, const mps_tensor *, mps_generator *, const mps_tensor *);

void check_type(const at::Tensor &value, const char *name) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(value.scalar_type()), "\"", name, "\" not implemented for '", c10::toString(value.scalar_type()), "'");
}

at::Tensor sample(Sampler sampler, const char *name, const at::Tensor &self, const Generator &generator) {
  check_type(self, name);
  const at::Tensor out = empty(self.sizes(), self.options());
  if (out.numel() == 0) return out;
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(sampler(stream(), self_.pointer(), openmps::generator(generator), out_.pointer()));
  return out;
}

at::Tensor poisson(const at::Tensor &self, Generator generator) { return sample(mps_op_poisson, "poisson_cpu", self, generator); }

at::Tensor binomial(const at::Tensor &count, const at::Tensor &prob, Generator generator) {
  TORCH_CHECK_VALUE(at::isFloatingType(count.scalar_type()), "binomial only supports floating-point dtypes for count, got: ", count.scalar_type());
  TORCH_CHECK_VALUE(at::isFloatingType(prob.scalar_type()), "binomial only supports floating-point dtypes for prob, got: ", prob.scalar_type());
  const at::Tensor out = empty(at::infer_size(count.sizes(), prob.sizes()), count.options());
  at::TensorIteratorConfig().add_output(out).add_const_input(count).add_const_input(prob).build();  // its checks
  if (out.numel() == 0) return out;
  const at::Tensor counts = count.expand(out.sizes()), probs = prob.expand(out.sizes());
  const Operand count_(counts, Operand::plain), prob_(probs, Operand::plain), out_(out, Operand::output);
  check(mps_op_binomial(stream(), count_.pointer(), prob_.pointer(), openmps::generator(generator), out_.pointer()));
  return out;
}

}  // namespace

at::Tensor _s_gamma_mps(const at::Tensor &self, Generator generator) { return sample(mps_op_standard_gamma, "gamma_cpu", self, generator); }
at::Tensor _s_dirichlet_mps(const at::Tensor &self, Generator generator) { return sample(mps_op_sample_dirichlet, "dirichlet", self, generator); }

at::Tensor _standard_gamma_grad_mps(const at::Tensor &self, const at::Tensor &output) {
  check_type(self, "_standard_gamma_grad_cpu");
  const at::Tensor out = empty(self.sizes(), self.options());
  at::TensorIteratorConfig().add_output(out).add_const_input(self).add_const_input(output).build();  // its checks
  const Operand self_(self, Operand::plain), output_(output, Operand::plain), out_(out, Operand::output);
  check(mps_op_standard_gamma_grad(stream(), self_.pointer(), output_.pointer(), out_.pointer()));
  return out;
}

at::Tensor _dirichlet_grad_mps(const at::Tensor &x, const at::Tensor &alpha, const at::Tensor &total) {
  check_type(x, "_dirichlet_grad_cpu");
  const at::Tensor out = empty(x.sizes(), x.options());
  at::TensorIteratorConfig().add_output(out).add_const_input(x).add_const_input(alpha).add_const_input(total).build();  // its checks
  const Operand x_(x, Operand::plain), alpha_(alpha, Operand::plain), total_(total, Operand::plain), out_(out, Operand::output);
  check(mps_op_dirichlet_grad(stream(), x_.pointer(), alpha_.pointer(), total_.pointer(), out_.pointer()));
  return out;
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("poisson", TORCH_FN(poisson));
  m.impl("binomial", TORCH_FN(binomial));
}

}  // namespace openmps::native
