/* SPDX-License-Identifier: BSD-3-Clause
 *
 * histogram: bincount, histc, histogram and histogramdd: the CPU's checks and choice of edges, then one call that counts.
 */
#include <ATen/native/Resize.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "bridge/convert.h"
#include "bridge/kernels/histogram.h"
#include "kernels/histogram_arguments.h"
#include "openmps/ops/histogram.h"

namespace openmps::native {
namespace {

using Tensors = std::vector<at::Tensor>;
using OptionalTensor = std::optional<at::Tensor>;
using Range = std::optional<at::ArrayRef<double>>;

void check_type(bool implemented, const char *name, const at::Tensor &self) {
  TORCH_CHECK_NOT_IMPLEMENTED(implemented, "\"", name, "\" not implemented for '", self.scalar_type(), "'");
}

int64_t point_count(const at::Tensor &self) {
  int64_t count = 1;
  for (int64_t d = 0; d + 1 < self.dim(); d++) count *= self.size(d);
  return count;
}

void check_inputs(const at::Tensor &self, at::TensorList bins, const OptionalTensor &weight) {
  TORCH_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions, but got ", self.dim());
  const int64_t dimensions = self.size(-1);
  TORCH_CHECK(static_cast<int64_t>(bins.size()) == dimensions, "torch.histogramdd: expected ", dimensions, " sequences of bin edges for a ", dimensions,
              "-dimensional histogram but got ", bins.size());
  for (size_t d = 0; d < bins.size(); d++) {
    TORCH_CHECK(self.dtype() == bins[d].dtype(), "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype ",
                self.dtype(), " and bins for dimension ", d, " with dtype ", bins[d].dtype());
    TORCH_CHECK(bins[d].dim() == 1, "torch.histogramdd: bins tensor should have one dimension, but got ", bins[d].dim(),
                " dimensions in the bins tensor for dimension ", d);
    TORCH_CHECK(bins[d].numel() > 0, "torch.histogramdd: bins tensor should have at least 1 element, but got ", bins[d].numel(),
                " elements in the bins tensor for dimension ", d);
  }
  if (!weight.has_value()) return;
  TORCH_CHECK(self.dtype() == weight->dtype(), "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got input(",
              self.dtype(), "), and weight(", weight->dtype(), ")");
  const at::IntArrayRef points = self.sizes().slice(0, self.dim() - 1);
  const at::DimVector weights = weight->dim() ? at::DimVector(weight->sizes()) : at::DimVector{1};
  TORCH_CHECK(points.equals(weights), "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost "
              "dimension, but got input with shape ", self.sizes(), " and weight with shape ", weight->sizes());
}

// Checks and resizes hist, and the edges if they are wanted (else an empty list).
void prepare(const at::Tensor &self, at::IntArrayRef bins, const at::Tensor &hist, at::TensorList edges) {
  TORCH_CHECK(self.dtype() == hist.dtype(), "torch.histogram: input tensor and hist tensor should have the same dtype, but got input ", self.dtype(),
              " and hist ", hist.dtype());
  for (size_t d = 0; d < bins.size(); d++) {
    if (!edges.empty())
      TORCH_CHECK(self.dtype() == edges[d].dtype(), "torch.histogram: input tensor and bin_edges tensor should have the same dtype, but got input ",
                  self.dtype(), " and bin_edges ", edges[d].dtype(), " for dimension ", d);
    TORCH_CHECK(bins[d] > 0, "torch.histogram(): bins must be > 0, but got ", bins[d], " for dimension ", d);
    if (!edges.empty()) at::native::resize_output(edges[d], {bins[d] + 1});
  }
  at::native::resize_output(hist, bins);
}

at::DimVector bins_between(at::TensorList edges) {
  at::DimVector bins;
  for (const at::Tensor &edge : edges) bins.push_back(edge.numel() - 1);
  return bins;
}

// The outermost edges, left and right, of each dimension of points (count x dimensions).
std::vector<std::pair<double, double>> outer_edges(const at::Tensor &points, const Range &range) {
  const int64_t dimensions = points.size(-1);
  std::vector<std::pair<double, double>> outer(dimensions, {0.0, 1.0});
  if (range.has_value()) {
    TORCH_CHECK(static_cast<int64_t>(range->size()) == 2 * dimensions, "torch.histogramdd: for a ", dimensions, "-dimensional histogram range should have ",
                2 * dimensions, " elements, but got ", range->size());
    for (int64_t d = 0; d < dimensions; d++) outer[d] = {(*range)[2 * d], (*range)[2 * d + 1]};
  } else if (points.numel() > 0) {
    check_type(points.scalar_type() == at::kFloat, "histogramdd", points);
    const auto [low, high] = dimensions == 1 ? at::aminmax(points) : at::aminmax(points, 0);
    const at::Tensor both = at::cat({low.reshape({-1}), high.reshape({-1})}).cpu();
    const float *data = both.const_data_ptr<float>();
    for (int64_t d = 0; d < dimensions; d++) outer[d] = {data[d], data[dimensions + d]};
  }
  for (int64_t d = 0; d < dimensions; d++) {
    auto &[left, right] = outer[d];
    TORCH_CHECK(std::isfinite(left) && std::isfinite(right), "torch.histogramdd: dimension ", d, "'s range [", left, ", ", right, "] is not finite");
    TORCH_CHECK(left <= right, "torch.histogramdd: min should not exceed max, but got min ", left, " max ", right, " for dimension ", d);
    if (left == right) {
      left -= 0.5;
      right += 0.5;
    }
  }
  return outer;
}

std::pair<double, double> histc_edges(const at::Tensor &self, const at::Scalar &min, const at::Scalar &max) {
  double left = min.toDouble(), right = max.toDouble();
  if (left == right && self.numel() > 0) {
    check_type(!self.is_complex(), "aminmax_cpu", self);
    const auto [low, high] = at::aminmax(self);
    left = low.item().toDouble();
    right = high.item().toDouble();
  }
  if (left == right) {
    const float value = static_cast<float>(left), infinity = std::numeric_limits<float>::infinity();
    left -= 1;
    right += 1;
    if (self.scalar_type() == at::kFloat) {  // where 1 is less than a unit in the last place
      const float before = std::nextafter(value, -infinity), after = std::nextafter(value, infinity);
      left = std::min<double>(left, std::isfinite(before) ? before : value);
      right = std::max<double>(right, std::isfinite(after) ? after : value);
    }
  }
  TORCH_CHECK(std::isfinite(left) && std::isfinite(right), "torch.histc: range of [", left, ", ", right, "] is not finite");
  TORCH_CHECK(left < right, "torch.histc: max must be larger than min");
  return {left, right};
}

void spread(at::Tensor edges, std::pair<double, double> outer, int64_t bins) {
  check_type(edges.scalar_type() != at::kBool, "linspace_cpu", edges);
  at::linspace_out(edges, outer.first, outer.second, bins + 1);
}

// hist /= its sum and the bins' extents.
void normalize(at::Tensor hist, at::TensorList edges) {
  hist.div_(hist.sum());
  for (size_t d = 0; d < edges.size(); d++) {
    at::DimVector shape(edges.size(), 1);
    shape[d] = edges[d].numel() - 1;
    hist.div_(edges[d].diff().reshape(shape));
  }
}

void count(const at::Tensor &self, const OptionalTensor &weight, bool density, const at::Tensor &hist, at::TensorList edges, mps_histogram_method method) {
  check_type(at::isFloatingType(self.scalar_type()), "histogram_cpu", self);
  if (self.numel() == 0) {
    hist.zero_();
  } else {
    const int64_t points = point_count(self);
    const at::Tensor flat = self.reshape({points, self.size(-1)}), all_edges = edges.size() == 1 ? edges[0] : at::cat(edges);
    const at::Tensor weights = weight.has_value() ? weight->reshape({points}) : at::Tensor();
    const Operand self_(flat, Operand::plain), edges_(all_edges, Operand::plain), weight_(weights, Operand::plain), hist_(hist, Operand::output);
    const at::DimVector bins = bins_between(edges);
    check(mps_op_histogram(stream(), self_.pointer(), edges_.pointer(), bins.data(), static_cast<uint32_t>(bins.size()), weight_.pointer_or_null(), method,
                           hist_.pointer()));
  }
  if (density) normalize(hist, edges);
}

void check_dimensions(const at::Tensor &self) { TORCH_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions"); }

OptionalTensor flat_weight(const OptionalTensor &weight) { return weight.has_value() ? weight->reshape({weight->numel()}) : weight; }

}  // namespace

at::Tensor &histogram_histc_out(const at::Tensor &self, int64_t bins, const at::Scalar &min, const at::Scalar &max, at::Tensor &out) {
  const at::Tensor edges = empty({0}, self.options()), points = self.reshape({self.numel(), 1});
  prepare(points, bins, out, edges);
  spread(edges, histc_edges(self, min, max), bins);
  check_inputs(points, edges, {});
  count(points, {}, false, out, edges, MPS_HISTOGRAM_LINEAR);
  return out;
}

at::Tensor histogram_histc(const at::Tensor &self, int64_t bins, const at::Scalar &min, const at::Scalar &max) {
  at::Tensor out = empty({0}, self.options());
  return histogram_histc_out(self, bins, min, max, out);
}

std::tuple<at::Tensor &, at::Tensor &> histogram_out(const at::Tensor &self, const at::Tensor &bins, const OptionalTensor &weight, bool density,
                                                     at::Tensor &hist, at::Tensor &bin_edges) {
  const at::Tensor points = self.reshape({self.numel(), 1});
  const OptionalTensor weights = flat_weight(weight);
  check_inputs(points, bins, weights);
  prepare(points, bins.numel() - 1, hist, bin_edges);
  bin_edges.copy_(bins);
  count(points, weights, density, hist, bin_edges, MPS_HISTOGRAM_SEARCHED);
  return {hist, bin_edges};
}

std::tuple<at::Tensor, at::Tensor> histogram(const at::Tensor &self, const at::Tensor &bins, const OptionalTensor &weight, bool density) {
  at::Tensor hist = empty({0}, self.options()), bin_edges = empty({0}, bins.options());
  histogram_out(self, bins, weight, density, hist, bin_edges);
  return {hist, bin_edges};
}

std::tuple<at::Tensor &, at::Tensor &> histogram_out(const at::Tensor &self, int64_t bins, Range range, const OptionalTensor &weight, bool density,
                                                     at::Tensor &hist, at::Tensor &bin_edges) {
  const at::Tensor points = self.reshape({self.numel(), 1});
  const OptionalTensor weights = flat_weight(weight);
  prepare(points, bins, hist, bin_edges);
  spread(bin_edges, outer_edges(points, range)[0], bins);
  check_inputs(points, bin_edges, weights);
  count(points, weights, density, hist, bin_edges, MPS_HISTOGRAM_NEAR);
  return {hist, bin_edges};
}

std::tuple<at::Tensor, at::Tensor> histogram(const at::Tensor &self, int64_t bins, Range range, const OptionalTensor &weight, bool density) {
  at::Tensor hist = empty({0}, self.options()), bin_edges = empty({0}, self.options());
  histogram_out(self, bins, range, weight, density, hist, bin_edges);
  return {hist, bin_edges};
}

Tensors histogramdd_bin_edges(const at::Tensor &self, at::IntArrayRef bins, Range range, const OptionalTensor & /*weight*/, bool /*density*/) {
  check_dimensions(self);
  const int64_t dimensions = self.size(-1);
  TORCH_CHECK(static_cast<int64_t>(bins.size()) == dimensions, "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  const auto outer = outer_edges(self.reshape({point_count(self), dimensions}), range);
  Tensors edges;
  for (int64_t d = 0; d < dimensions; d++) {
    edges.push_back(empty({0}, self.options()));
    spread(edges.back(), outer[d], bins[d]);
  }
  return edges;
}

at::Tensor _histogramdd(const at::Tensor &self, at::IntArrayRef bins, Range range, const OptionalTensor &weight, bool density) {
  const Tensors edges = histogramdd_bin_edges(self, bins, range, weight, density);
  check_inputs(self, edges, weight);
  at::Tensor hist = empty({0}, self.options());
  prepare(self, bins_between(edges), hist, {});
  count(self, weight, density, hist, edges, MPS_HISTOGRAM_NEAR);
  return hist;
}

at::Tensor _histogramdd(const at::Tensor &self, at::TensorList bins, const OptionalTensor &weight, bool density) {
  check_dimensions(self);
  check_inputs(self, bins, weight);
  at::Tensor hist = empty({0}, self.options());
  prepare(self, bins_between(bins), hist, {});
  count(self, weight, density, hist, bins, MPS_HISTOGRAM_SEARCHED);
  return hist;
}

at::Tensor _bincount_mps(const at::Tensor &self, const OptionalTensor &weights, int64_t minlength) {
  check_type(at::isIntegralType(self.scalar_type(), false) && self.scalar_type() < at::kUInt16, "bincount_cpu", self);
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  if (self.dim() == 1 && self.numel() == 0) return at::zeros({minlength}, self.options().dtype(at::kLong));
  int64_t least = -1, most = -1;
  if (self.dim() == 1) {
    const auto [low, high] = at::aminmax(self);
    least = low.item<int64_t>();
    most = high.item<int64_t>();
  }
  TORCH_CHECK(least >= 0, "bincount only supports 1-d non-negative integral inputs.");
  const bool weighted = weights.has_value() && weights->defined();
  TORCH_CHECK(!weighted || (weights->dim() == 1 && weights->size(0) == self.size(0)), "weights should be 1-d and have the same length as input");
  const at::Tensor addends = !weighted ? at::Tensor() : weights->is_complex() ? weights->to(at::kFloat) : *weights;
  at::Tensor out = empty({std::max(most + 1, minlength)}, self.options().dtype(weighted ? at::kFloat : at::kLong));
  const Operand self_(self, Operand::plain), weights_(addends, Operand::plain), out_(out, Operand::output);
  check(mps_op_bincount(stream(), self_.pointer(), weights_.pointer_or_null(), out_.pointer()));
  return out;
}

}  // namespace openmps::native
