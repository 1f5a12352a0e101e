/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shape: kernels of the shape family whose results have to be made: shapes and checks are PyTorch's, elements are moved by C.
 */
#include <ATen/MemoryOverlap.h>
#include <c10/util/irange.h>

#include <cmath>

#include "bridge/convert.h"
#include "bridge/kernels/shape.h"
#include "openmps/ops/shape.h"

namespace openmps::native {

void structured_cat_out_mps::impl(const at::ITensorListRef &tensors, int64_t dim, int64_t valid, bool, bool, bool, at::MemoryFormat, const at::Tensor &out) {
  if (out.numel() == 0 || valid < 0) return;
  std::vector<at::Tensor> parts;
  for (const at::Tensor &part : tensors)
    if (!(part.dim() == 1 && part.size(0) == 0)) parts.push_back(part);
  const OperandList parts_(parts, Operand::flagged);
  const Operand out_(out, Operand::output);
  check(mps_op_cat(stream(), parts_.data(), parts_.count(), dim, out_.pointer()));
}

at::Tensor flip_mps(const at::Tensor &self, at::IntArrayRef dims) {
  at::dim_list_to_bitset(dims, static_cast<size_t>(self.dim()));  // refuses dimensions that are out of range or named twice
  const at::Tensor out = at::empty_like(self, self.suggest_memory_format());
  const Operand self_(self, Operand::flagged), out_(out, Operand::output);
  check(mps_op_flip(stream(), self_.pointer(), dims.data(), static_cast<uint32_t>(dims.size()), out_.pointer()));
  return out;
}

at::Tensor repeat_mps(const at::Tensor &self, at::IntArrayRef repeats) {
  TORCH_CHECK(repeats.size() >= static_cast<size_t>(self.dim()), "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  const size_t leading = repeats.size() - static_cast<size_t>(self.dim());
  at::DimVector sizes(repeats.begin(), repeats.end());
  for (const auto d : c10::irange(sizes.size())) {
    TORCH_CHECK(sizes[d] >= 0, "Trying to create tensor with negative dimension ", sizes[d], ": ", repeats);
    if (d >= leading) sizes[d] *= self.size(static_cast<int64_t>(d - leading));
  }
  const at::Tensor out = empty(sizes, self.options());
  const Operand self_(self, Operand::flagged), out_(out, Operand::output);
  check(mps_op_repeat(stream(), self_.pointer(), repeats.data(), static_cast<uint32_t>(repeats.size()), out_.pointer()));
  return out;
}

at::Tensor constant_pad_nd_mps(const at::Tensor &self, at::IntArrayRef pad, const at::Scalar &value) {
  TORCH_CHECK(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  const auto padded = static_cast<int64_t>(pad.size() / 2);
  TORCH_CHECK(padded <= self.dim(), "Length of pad should be no more than twice the number of dimensions of the input. Pad length is ", pad.size(),
              "while the input has ", self.dim(), "dimensions.");
  at::Tensor cut = self;  // what negative padding leaves
  for (int64_t k = padded; k-- > 0;) {
    const int64_t d = self.dim() - 1 - k;
    if (pad[2 * k] < 0) cut = cut.narrow(d, -pad[2 * k], cut.size(d) + pad[2 * k]);
    if (pad[2 * k + 1] < 0) cut = cut.narrow(d, 0, cut.size(d) + pad[2 * k + 1]);
  }
  at::DimVector sizes(self.sizes());
  for (const auto k : c10::irange(padded)) {
    int64_t &size = sizes[self.dim() - 1 - k];
    const int64_t wanted = size + pad[2 * k] + pad[2 * k + 1];
    TORCH_CHECK(wanted >= 0, "The input size ", size, ", plus negative padding ", pad[2 * k], " and ", pad[2 * k + 1],
                " resulted in a negative output size, which is invalid. Check dimension ", self.dim() - 1 - k, " of your input.");
    size = wanted;
  }
  if (cut.sizes() == at::IntArrayRef(sizes)) return cut.clone();  // as on the CPU, its strides are kept
  const at::Tensor out = empty(sizes, self.options().memory_format(self.suggest_memory_format()));
  const Operand self_(self, Operand::flagged), out_(out, Operand::output);
  check(mps_op_constant_pad(stream(), self_.pointer(), pad.data(), static_cast<uint32_t>(pad.size()), scalar(value), out_.pointer()));
  return out;
}

at::Tensor pixel_shuffle_mps(const at::Tensor &self, int64_t factor) {
  TORCH_CHECK(self.dim() >= 3, "pixel_shuffle expects input to have at least 3 dimensions, but got input with ", self.dim(), " dimension(s)");
  TORCH_CHECK(factor > 0, "pixel_shuffle expects a positive upscale_factor, but got ", factor);
  const int64_t channels = self.size(-3);
  TORCH_CHECK_VALUE(factor <= std::numeric_limits<decltype(factor)>::max() / factor, "upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor=",
                    factor);
  TORCH_CHECK(channels % (factor * factor) == 0, "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, ",
              "but input.size(-3)=", channels, " is not divisible by ", factor * factor);
  at::DimVector sizes(self.sizes());
  const size_t rank = sizes.size();
  sizes[rank - 3] = channels / (factor * factor);
  sizes[rank - 2] *= factor;
  sizes[rank - 1] *= factor;
  const at::Tensor out = empty(sizes, self.options());
  const Operand self_(self, Operand::flagged), out_(out, Operand::output);
  check(mps_op_pixel_shuffle(stream(), self_.pointer(), factor, out_.pointer()));
  return out;
}

at::Tensor pixel_unshuffle_mps(const at::Tensor &self, int64_t factor) {
  TORCH_CHECK(self.dim() >= 3, "pixel_unshuffle expects input to have at least 3 dimensions, but got input with ", self.dim(), " dimension(s)");
  TORCH_CHECK(factor > 0, "pixel_unshuffle expects a positive downscale_factor, but got ", factor);
  const int64_t height = self.size(-2), width = self.size(-1);
  TORCH_CHECK(height % factor == 0, "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=", height,
              " is not divisible by ", factor);
  TORCH_CHECK(width % factor == 0, "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=", width,
              " is not divisible by ", factor);
  at::DimVector sizes(self.sizes());
  const size_t rank = sizes.size();
  sizes[rank - 3] *= factor * factor;
  sizes[rank - 2] = height / factor;
  sizes[rank - 1] = width / factor;
  const at::Tensor out = empty(sizes, self.options());
  const Operand self_(self, Operand::flagged), out_(out, Operand::output);
  check(mps_op_pixel_unshuffle(stream(), self_.pointer(), factor, out_.pointer()));
  return out;
}

at::Tensor unfold_backward(const at::Tensor &grad, at::IntArrayRef input_sizes, int64_t dim, int64_t size, int64_t step) {
  if (input_sizes.empty()) return grad.sum();  // windows of a tensor without dimensions hold its one element, or nothing
  const at::Tensor out = empty(input_sizes, grad.options());
  const Operand grad_(grad, Operand::plain), out_(out, Operand::output);
  check(mps_op_unfold_backward(stream(), grad_.pointer(), dim, size, step, out_.pointer()));
  return out;
}

namespace {

// Elements of a row x col matrix on and below diagonal `offset`.
int64_t count_below(int64_t row, int64_t col, int64_t offset) {
  if (row == 0 || col == 0) return 0;
  const int64_t first = offset > 0 ? std::min(col, 1 + offset) : row + offset > 0;
  const int64_t last = std::max<int64_t>(0, std::min(col, row + offset));
  const int64_t all = std::max<int64_t>(0, std::min(row, row + offset));
  const int64_t full = last - first + 1;
  int64_t count = (first + last) * full >> 1;
  const int64_t rest = all - full;
  return rest > 0 ? count + rest * col : count;
}

at::Tensor triangle_indices(int64_t row, int64_t col, int64_t offset, bool upper, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout) {
  TORCH_CHECK(row >= 0, "row must be non-negative, got", row);
  TORCH_CHECK(col >= 0, "col must be non-negative, got", col);
  TORCH_CHECK(!layout || *layout == at::kStrided, "only support layout=torch.strided, got ", *layout);
  const int64_t count = upper ? row * col - count_below(row, col, offset - 1) : count_below(row, col, offset);
  const at::Tensor out = empty({2, count}, at::TensorOptions(kDevice).dtype(dtype.value_or(at::kLong)));
  const Operand out_(out, Operand::output);
  check((upper ? mps_op_triu_indices : mps_op_tril_indices)(stream(), row, col, offset, out_.pointer()));
  return out;
}

// How many values start, start + step, ... lie before end (arange) or up to it (range), with PyTorch's checks.
int64_t count_steps(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step, at::ScalarType type, bool inclusive) {
  const double from = start.toDouble(), to = end.toDouble(), by = step.toDouble();
  TORCH_CHECK(by > 0 || by < 0, "step must be nonzero");
  // An int64 result is counted in whole numbers.
  if (type == at::kLong && !inclusive) TORCH_CHECK_VALUE(step.to<int64_t>() != 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(from) && std::isfinite(to), "unsupported range: ", from, " -> ", to);
  TORCH_CHECK((by > 0 && to >= from) || (by < 0 && to <= from), "upper bound and lower bound inconsistent with step sign");
  double count;
  const bool whole = start.isIntegral(false) && end.isIntegral(false) && step.isIntegral(false);
  if ((type == at::kLong && !inclusive) || (at::isIntegralType(type, false) && whole)) {
    const int64_t distance = end.to<int64_t>() - start.to<int64_t>(), stride = step.to<int64_t>();
    count = inclusive ? static_cast<double>(distance / stride + 1) : static_cast<double>((distance + stride - (stride > 0 ? 1 : -1)) / stride);
  } else {
    count = inclusive ? std::floor((to - from) / by + 1) : std::ceil((to - from) / by);
  }
  TORCH_CHECK(count >= 0 && count <= static_cast<double>(std::numeric_limits<int64_t>::max()), "invalid size, possible overflow?");
  return static_cast<int64_t>(count);
}

at::Tensor &fill_steps(const at::Scalar &start, const at::Scalar &step, int64_t count, at::Tensor &out) {
  if (out.numel() != count || out.dim() != 1) {
    if (out.numel() > 0 && out.numel() != count)
      TORCH_WARN("The number of elements in the out tensor of shape ", out.sizes(), " is ", out.numel(),
                 " which does not match the computed number of elements ", count,
                 ". Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of shape (", count, ",).");
    out.resize_({count});
  }
  const Operand out_(out, Operand::output);
  check(mps_op_arange(stream(), scalar(start), scalar(step), out_.pointer()));
  return out;
}

}  // namespace

at::Tensor tril_indices_mps(int64_t row, int64_t col, int64_t offset, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                            std::optional<at::Device>, std::optional<bool>) {
  return triangle_indices(row, col, offset, false, dtype, layout);
}

at::Tensor triu_indices_mps(int64_t row, int64_t col, int64_t offset, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                            std::optional<at::Device>, std::optional<bool>) {
  return triangle_indices(row, col, offset, true, dtype, layout);
}

at::Tensor &arange_mps_out(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step, at::Tensor &out) {
  return fill_steps(start, step, count_steps(start, end, step, out.scalar_type(), false), out);
}

at::Tensor &range_mps_out(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step, at::Tensor &out) {
  return fill_steps(start, step, count_steps(start, end, step, out.scalar_type(), true), out);
}

at::Tensor &linspace_out_mps(const at::Scalar &start, const at::Scalar &end, int64_t steps, at::Tensor &out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps || out.dim() != 1) out.resize_({steps});
  if (steps == 0) return out;
  if (steps == 1) return out.fill_(start);
  if (at::isComplexType(out.scalar_type())) {
    // Both parts run evenly, so each is a linspace of its own.
    const auto parts = at::view_as_real(out);
    const auto from = start.toComplexDouble(), to = end.toComplexDouble();
    at::Tensor real = parts.select(-1, 0), imaginary = parts.select(-1, 1);
    linspace_out_mps(from.real(), to.real(), steps, real);
    linspace_out_mps(from.imag(), to.imag(), steps, imaginary);
    return out;
  }
  const Operand out_(out, Operand::output);
  const bool whole = at::isIntegralType(out.scalar_type(), false);  // then the ends are, before the steps are made
  check(mps_op_linspace(stream(), scalar(whole ? check_fits(start, out.scalar_type()) : start), scalar(whole ? check_fits(end, out.scalar_type()) : end),
                        out_.pointer()));
  return out;
}

at::Tensor &eye_out_mps(int64_t n, int64_t m, at::Tensor &out) {
  TORCH_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TORCH_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  out.resize_({n, m});
  const Operand out_(out, Operand::output);
  check(mps_op_eye(stream(), out_.pointer()));
  return out;
}

at::Tensor &eye_out_mps(int64_t n, at::Tensor &out) { return eye_out_mps(n, n, out); }

}  // namespace openmps::native
