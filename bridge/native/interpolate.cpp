/* SPDX-License-Identifier: BSD-3-Clause
 *
 * interpolate: entries that upstream lists for CPU and CUDA only: gradients with antialiasing, and Lanczos. Shapes and checks are those
 * of PyTorch's structured kernels.
 */
#include <ATen/ops/_upsample_bicubic2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_bilinear2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_lanczos2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_lanczos2d_aa_meta.h>
#include <torch/library.h>

#include "bridge/convert.h"
#include "bridge/outputs.h"
#include "openmps/ops/interpolate.h"

namespace openmps::native {
namespace {

using at::Tensor;
typedef std::optional<double> Scale;

// Runs the checks of a structured kernel, and makes or resizes its output.
template <class Meta>
struct Shape : Meta {
  Tensor out;
  bool given;

  explicit Shape(const Tensor &out_ = Tensor()) : out(out_), given(out_.defined()) {}
  void set_output_raw_strided(int64_t, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options) override {
    if (given)
      resize_out(out, sizes, strides, options);
    else
      out = create_out(sizes, strides, options);
  }
  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options) override {
    set_output_raw_strided(index, sizes, strides, options);
  }
  const Tensor &maybe_get_output(int64_t) override { return out; }
};

template <class Meta, auto Function>
struct Gradient {
  static Tensor run(Shape<Meta> shape, const Tensor &grad, at::IntArrayRef output_size, at::IntArrayRef input_size, bool align_corners, Scale h, Scale w) {
    shape.meta(grad, output_size, input_size, align_corners, h, w);
    const Operand grad_(grad, Operand::plain), out_(shape.out, Operand::output);
    const List<int64_t> output_size_(output_size), input_size_(input_size);
    const Optional<double> h_(h), w_(w);
    check(Function(stream(), grad_.pointer(), output_size_.data(), output_size_.count(), input_size_.data(), input_size_.count(), align_corners,
                   h_.pointer(), w_.pointer(), out_.pointer()));
    return shape.out;
  }
  static Tensor make(const Tensor &grad, at::IntArrayRef output_size, at::IntArrayRef input_size, bool align_corners, Scale h, Scale w) {
    return run(Shape<Meta>(), grad, output_size, input_size, align_corners, h, w);
  }
  static Tensor &write(const Tensor &grad, at::IntArrayRef output_size, at::IntArrayRef input_size, bool align_corners, Scale h, Scale w, Tensor &out) {
    run(Shape<Meta>(out), grad, output_size, input_size, align_corners, h, w);
    return out;
  }
};

typedef Gradient<at::meta::structured__upsample_bilinear2d_aa_backward, mps_op_upsample_bilinear2d_aa_backward> Bilinear;
typedef Gradient<at::meta::structured__upsample_bicubic2d_aa_backward, mps_op_upsample_bicubic2d_aa_backward> Bicubic;
typedef Gradient<at::meta::structured__upsample_lanczos2d_aa_backward, mps_op_upsample_lanczos2d_aa_backward> Lanczos;

Tensor lanczos_run(Shape<at::meta::structured__upsample_lanczos2d_aa> shape, const Tensor &self, at::IntArrayRef output_size, bool align_corners, Scale h,
                   Scale w) {
  shape.meta(self, output_size, align_corners, h, w);
  const Operand self_(self, Operand::plain), out_(shape.out, Operand::output);
  const List<int64_t> output_size_(output_size);
  const Optional<double> h_(h), w_(w);
  check(mps_op_upsample_lanczos2d_aa(stream(), self_.pointer(), output_size_.data(), output_size_.count(), align_corners, h_.pointer(), w_.pointer(),
                                     out_.pointer()));
  return shape.out;
}
Tensor lanczos(const Tensor &self, at::IntArrayRef output_size, bool align_corners, Scale h, Scale w) {
  return lanczos_run(Shape<at::meta::structured__upsample_lanczos2d_aa>(), self, output_size, align_corners, h, w);
}
Tensor &lanczos_out(const Tensor &self, at::IntArrayRef output_size, bool align_corners, Scale h, Scale w, Tensor &out) {
  lanczos_run(Shape<at::meta::structured__upsample_lanczos2d_aa>(out), self, output_size, align_corners, h, w);
  return out;
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("_upsample_bilinear2d_aa_backward", TORCH_FN(Bilinear::make));
  m.impl("_upsample_bilinear2d_aa_backward.grad_input", TORCH_FN(Bilinear::write));
  m.impl("_upsample_bicubic2d_aa_backward", TORCH_FN(Bicubic::make));
  m.impl("_upsample_bicubic2d_aa_backward.grad_input", TORCH_FN(Bicubic::write));
  m.impl("_upsample_lanczos2d_aa", TORCH_FN(lanczos));
  m.impl("_upsample_lanczos2d_aa.out", TORCH_FN(lanczos_out));
  m.impl("_upsample_lanczos2d_aa_backward", TORCH_FN(Lanczos::make));
  m.impl("_upsample_lanczos2d_aa_backward.grad_input", TORCH_FN(Lanczos::write));
}

}  // namespace
}  // namespace openmps::native
