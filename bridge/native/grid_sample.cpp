/* SPDX-License-Identifier: BSD-3-Clause
 *
 * grid_sample: entries that make their results; checks are PyTorch's (ATen/native/GridSamplerUtils.h).
 */
#include <ATen/native/GridSamplerUtils.h>

#include "bridge/convert.h"
#include "bridge/kernels/grid_sample.h"
#include "openmps/ops/grid_sample.h"

namespace openmps::native {
namespace {

using at::Tensor;

void check_grid(const Tensor &input, const Tensor &grid, int64_t interpolation_mode, bool deep) {
  at::native::check_grid_sampler_common(input, grid);
  if (deep)
    at::native::check_grid_sampler_3d(input, grid, interpolation_mode);
  else
    at::native::check_grid_sampler_2d(input, grid);
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(input.scalar_type()), deep ? "\"grid_sampler3d_cpu\"" : "\"grid_sampler_2d_cpu_kernel_impl\"",
                              " not implemented for '", input.scalar_type(), "'");
  TORCH_CHECK(input.scalar_type() == grid.scalar_type(), "expected scalar type ", input.scalar_type(), " but found ", grid.scalar_type());
}

template <auto Function>
Tensor sample(const Tensor &input, const Tensor &grid, int64_t interpolation_mode, int64_t padding_mode, bool align_corners, bool deep) {
  check_grid(input, grid, interpolation_mode, deep);
  at::DimVector sizes{input.size(0), input.size(1)};
  sizes.append(grid.sizes().begin() + 1, grid.sizes().end() - 1);
  const Tensor out = empty(sizes, input.options());
  const Operand input_(input, Operand::plain), grid_(grid, Operand::plain), out_(out, Operand::output);
  check(Function(stream(), input_.pointer(), grid_.pointer(), interpolation_mode, padding_mode, align_corners, out_.pointer()));
  return out;
}

// The grid's gradient is made whether it is asked for or not, as on the CPU; only the input's is left out.
template <auto Function>
std::tuple<Tensor, Tensor> gradients(const Tensor &grad_output, const Tensor &input, const Tensor &grid, int64_t interpolation_mode, int64_t padding_mode,
                                     bool align_corners, std::array<bool, 2> output_mask, bool deep) {
  check_grid(input, grid, interpolation_mode, deep);
  const Tensor grad_input = output_mask[0] ? empty(input.sizes(), input.options()) : Tensor(), grad_grid = empty(grid.sizes(), grid.options());
  const Operand grad_(grad_output, Operand::plain), input_(input, Operand::plain), grid_(grid, Operand::plain);
  const Operand grad_input_(grad_input, Operand::output), grad_grid_(grad_grid, Operand::output);
  check(Function(stream(), grad_.pointer(), input_.pointer(), grid_.pointer(), interpolation_mode, padding_mode, align_corners,
                 grad_input_.pointer_or_null(), grad_grid_.pointer_or_null()));
  return {grad_input, grad_grid};
}

}  // namespace

Tensor grid_sampler_2d_mps(const Tensor &input, const Tensor &grid, int64_t interpolation_mode, int64_t padding_mode, bool align_corners) {
  return sample<mps_op_grid_sampler_2d>(input, grid, interpolation_mode, padding_mode, align_corners, false);
}
Tensor grid_sampler_3d_mps(const Tensor &input, const Tensor &grid, int64_t interpolation_mode, int64_t padding_mode, bool align_corners) {
  return sample<mps_op_grid_sampler_3d>(input, grid, interpolation_mode, padding_mode, align_corners, true);
}
std::tuple<Tensor, Tensor> grid_sampler_2d_backward_mps(const Tensor &grad_output, const Tensor &input, const Tensor &grid, int64_t interpolation_mode,
                                                        int64_t padding_mode, bool align_corners, std::array<bool, 2> output_mask) {
  return gradients<mps_op_grid_sampler_2d_backward>(grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask, false);
}
std::tuple<Tensor, Tensor> grid_sampler_3d_backward_mps(const Tensor &grad_output, const Tensor &input, const Tensor &grid, int64_t interpolation_mode,
                                                        int64_t padding_mode, bool align_corners, std::array<bool, 2> output_mask) {
  return gradients<mps_op_grid_sampler_3d_backward>(grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask, true);
}

}  // namespace openmps::native
