/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fft: Fourier transforms. The results' strides are those of PyTorch's CPU kernels: batch dimensions first, then transformed ones.
 */
#include <ATen/native/Resize.h>
#include <c10/util/irange.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bridge/convert.h"
#include "bridge/kernels/fft.h"
#include "openmps/ops/fft.h"

namespace openmps::native {
namespace {

uint32_t count(at::IntArrayRef values) { return static_cast<uint32_t>(values.size()); }

void check_float(const at::Tensor &self) {
  const auto type = c10::toRealValueType(self.scalar_type());
  TORCH_CHECK(type == at::kFloat, "MKL FFT doesn't support tensors of type: ", type);
}
void check_complex(const at::Tensor &self) {
  TORCH_CHECK(self.is_complex(), "Only supports complex dtypes, but found: ", self.scalar_type());
}

// 0: none, 1: 1 / sqrt(n), else 1 / n, with n the number of values of a signal.
double scale_of(int64_t normalization, at::IntArrayRef sizes, at::IntArrayRef dim) {
  double values = 1.0;
  for (const int64_t d : dim) values *= static_cast<double>(sizes[d]);
  return normalization == 0 ? 1.0 : normalization == 1 ? 1.0 / std::sqrt(values) : 1.0 / values;
}

at::DimVector wrapped(const at::Tensor &self, at::IntArrayRef dim) {
  at::DimVector result;
  for (const int64_t d : dim) result.push_back(at::maybe_wrap_dim(d, self.dim()));
  return result;
}

// Transformed dimensions by falling stride; the last one of real transforms keeps its place.
at::DimVector sorted(at::IntArrayRef dim, at::IntArrayRef strides, bool exclude_last) {
  at::DimVector result(dim.begin(), dim.end());
  std::sort(result.begin(), result.end() - (exclude_last ? 1 : 0), [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  return result;
}

// Batch dimensions by falling stride, then `dim`.
at::DimVector order_of(at::IntArrayRef strides, at::IntArrayRef dim) {
  at::DimVector order(strides.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto is_batch = [&](int64_t d) { return std::find(dim.begin(), dim.end(), d) == dim.end(); };
  const auto end = std::partition(order.begin(), order.end(), is_batch);
  std::sort(order.begin(), end, [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  std::copy(dim.begin(), dim.end(), end);
  return order;
}

// The strides of a result of `sizes`, made from something with `strides`.
at::DimVector result_strides(at::IntArrayRef sizes, at::IntArrayRef strides, at::IntArrayRef dim) {
  const at::DimVector order = order_of(strides, dim);
  at::DimVector result(sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    result[order[i]] = stride;
    stride *= sizes[order[i]];
  }
  return result;
}

// The CPU refuses transforms of nothing with these texts.
void refuse_empty(const at::Tensor &self, at::IntArrayRef dim) {
  if (self.numel() != 0) return;
  at::DimVector sizes{-1};
  for (const int64_t d : dim) sizes.push_back(self.size(d));
  (void)self.permute(order_of(self.strides(), dim)).reshape(sizes);
  TORCH_CHECK(false, "MKL FFT error: Intel oneMKL DFTI ERROR: Inconsistent configuration parameters");
}

at::Tensor &copy_result(const at::Tensor &result, at::Tensor &out) {
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

}  // namespace

at::Tensor _fft_c2c_mps(const at::Tensor &self, at::IntArrayRef dim_, int64_t normalization, bool forward) {
  check_complex(self);
  if (dim_.empty()) return self.clone();
  const at::DimVector dim = sorted(wrapped(self, dim_), self.strides(), false);
  check_float(self);
  refuse_empty(self, dim);
  const at::Tensor out = empty_strided(self.sizes(), result_strides(self.sizes(), self.strides(), dim), self.options());
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(mps_op_fft_c2c(stream(), self_.pointer(), dim.data(), count(dim), scale_of(normalization, self.sizes(), dim), forward, out_.pointer()));
  return out;
}

at::Tensor _fft_r2c_mps(const at::Tensor &self, at::IntArrayRef dim_, int64_t normalization, bool onesided) {
  TORCH_CHECK(self.is_floating_point(), "Only supports floating-point dtypes, but found: ", self.scalar_type());
  TORCH_CHECK(!dim_.empty(), "ArrayRef: attempted to access back() of empty list");
  const at::DimVector dim = sorted(wrapped(self, dim_), self.strides(), true);
  at::DimVector sizes(self.sizes());
  if (onesided) sizes[dim.back()] = sizes[dim.back()] / 2 + 1;
  check_float(self);
  refuse_empty(self, dim);
  const at::Tensor out = empty_strided(sizes, result_strides(sizes, self.strides(), dim), self.options().dtype(at::kComplexFloat));
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(mps_op_fft_r2c(stream(), self_.pointer(), dim.data(), count(dim), scale_of(normalization, self.sizes(), dim), onesided, out_.pointer()));
  return out;
}

at::Tensor _fft_c2r_mps(const at::Tensor &self, at::IntArrayRef dim_, int64_t normalization, int64_t last_dim_size) {
  check_complex(self);
  TORCH_CHECK(!dim_.empty(), "ArrayRef: attempted to access back() of empty list");
  const at::DimVector dim = wrapped(self, dim_), others(dim.begin(), dim.end() - 1);
  const int64_t last = dim.back(), half = last_dim_size / 2 + 1;
  check_float(self);
  refuse_empty(self, dim);
  TORCH_CHECK(last_dim_size > 0 && (self.size(last) == half || self.size(last) == last_dim_size),
              "in_size == signal_size[i + 1] || in_size == (signal_size[i + 1] / 2) + 1");
  at::DimVector sizes(self.sizes()), strides(self.strides());
  // The other dimensions are transformed first, into a tensor with strides of its own.
  if (!others.empty()) strides = result_strides(self.sizes(), strides, sorted(others, strides, false));
  sizes[last] = last_dim_size;
  const at::Tensor out = empty_strided(sizes, result_strides(sizes, strides, {last}), self.options().dtype(at::kFloat));
  const Operand self_(self.narrow(last, 0, half), Operand::plain), out_(out, Operand::output);
  check(mps_op_fft_c2r(stream(), self_.pointer(), dim.data(), count(dim), scale_of(normalization, sizes, dim), out_.pointer()));
  return out;
}

at::Tensor &_fft_c2c_mps_out(const at::Tensor &self, at::IntArrayRef dim, int64_t normalization, bool forward, at::Tensor &out) {
  return copy_result(_fft_c2c_mps(self, dim, normalization, forward), out);
}
at::Tensor &_fft_r2c_mps_out(const at::Tensor &self, at::IntArrayRef dim, int64_t normalization, bool onesided, at::Tensor &out) {
  return copy_result(_fft_r2c_mps(self, dim, normalization, onesided), out);
}
at::Tensor &_fft_c2r_mps_out(const at::Tensor &self, at::IntArrayRef dim, int64_t normalization, int64_t last_dim_size, at::Tensor &out) {
  return copy_result(_fft_c2r_mps(self, dim, normalization, last_dim_size), out);
}

}  // namespace openmps::native
