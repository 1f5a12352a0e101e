// SPDX-License-Identifier: BSD-3-Clause
//
// copy: copy_ in all directions, fills and reading one value.
//
// Between mps tensors a copy is a step like any other. From the CPU the source is read before the call returns. To the CPU the call
// waits. Types are converted on the device, except those that it does not have (float64, complex128): those on the CPU.

#include "bridge/bridge.h"
#include "bridge/python.h"
#include "openmps/ops/pointwise.h"

namespace openmps {

namespace {

bool same_layout(const at::Tensor &a, const at::Tensor &b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.is_non_overlapping_and_dense();
}

// Conjugating and negating commute and undo themselves: the destination's bits move to the source.
void encode_copy(const at::Tensor &destination, const at::Tensor &source) {
  mps_tensor from = tensor(source), to = tensor(destination);
  from.flags ^= to.flags;
  to.flags = 0;
  const bool plain = from.dtype == to.dtype && from.flags == 0 && from.buffer != nullptr;
  if (plain && same_layout(destination, source)) {
    const auto length = static_cast<uint64_t>(destination.numel()) * destination.element_size();
    return check(mps_stream_copy(stream(), from.buffer, from.offset, to.buffer, to.offset, length));
  }
  check(mps_op_copy(stream(), &from, &to));
}

void copy_on_device(const at::Tensor &destination, const at::Tensor &source) {
  at::Tensor from = source;
  if (source.sizes() != destination.sizes()) from = source.expand(destination.sizes());
  encode_copy(destination, from);
}

// A contiguous CPU tensor with the values of `source`, in a type that the device has.
at::Tensor prepare_source(const at::Tensor &source, at::ScalarType wanted) {
  at::Tensor plain = source.resolve_conj().resolve_neg();
  if (!has_dtype(plain.scalar_type())) plain = plain.to(wanted);
  return plain.contiguous();
}

void write(const at::Tensor &destination, const at::Tensor &contiguous_source) {
  const mps_tensor to = tensor(destination);
  check(mps_stream_write(stream(), to.buffer, to.offset, contiguous_source.const_data_ptr(), contiguous_source.nbytes()));
}

void copy_from_cpu(const at::Tensor &destination, const at::Tensor &source) {
  if (source.dim() == 0 && source.storage().nbytes() != 0) { // a constant: no memory is needed
    mps_tensor from, to = tensor(destination);
    describe(source.resolve_conj().resolve_neg(), &from, has_dtype(source.scalar_type()) ? source.scalar_type() : destination.scalar_type());
    from.flags = to.flags;
    to.flags = 0;
    return check(mps_op_copy(stream(), &from, &to));
  }
  const at::Tensor from = prepare_source(source, destination.scalar_type());
  const bool direct = from.scalar_type() == destination.scalar_type() && from.sizes() == destination.sizes() &&
                      destination.is_contiguous() && !destination.is_conj() && !destination.is_neg();
  if (direct) return write(destination, from);
  const at::Tensor staged = empty(from.sizes(), destination.options().dtype(from.scalar_type()));
  write(staged, from);
  copy_on_device(destination, staged);
}

void copy_to_cpu(const at::Tensor &destination, const at::Tensor &source) {
  // What the device can do, it does: conversion and making contiguous; the rest is a CPU copy.
  const at::ScalarType type = has_dtype(destination.scalar_type()) ? destination.scalar_type() : source.scalar_type();
  const bool complex_to_real = source.is_complex() && !c10::isComplexType(type);
  at::Tensor from = source;
  if (!source.is_contiguous() || source.is_conj() || source.is_neg() || (source.scalar_type() != type && !complex_to_real)) {
    from = empty(source.sizes(), source.options().dtype(complex_to_real ? source.scalar_type() : type));
    encode_copy(from, source);
  }
  const bool direct = from.scalar_type() == destination.scalar_type() && from.sizes() == destination.sizes() &&
                      destination.is_contiguous() && !destination.is_conj() && !destination.is_neg();
  const at::Tensor landing = direct ? destination : at::empty(from.sizes(), destination.options().dtype(from.scalar_type()).pinned_memory(false));
  const mps_tensor descriptor = tensor(from);
  {
    ReleaseGil unlocked;
    check(mps_stream_read(stream(), descriptor.buffer, descriptor.offset, landing.mutable_data_ptr(), from.nbytes()));
  }
  if (!direct) destination.copy_(landing);
}

// PyTorch's own errors for shapes that do not fit and for memory that overlaps.
void check_copy(const at::Tensor &self, const at::Tensor &source) {
  if (self.sizes() != source.sizes()) {
    at::TensorIteratorConfig()
        .add_output(self)
        .add_const_input(source)
        .resize_outputs(false)
        .check_all_same_dtype(false)
        .check_all_same_device(false)
        .set_check_mem_overlap(false)
        .build();
  }
  at::assert_no_internal_overlap(self);
  if (self.device() == source.device() && self.storage().is_alias_of(source.storage())) at::assert_no_partial_overlap(self, source);
}

at::Tensor &copy_(at::Tensor &self, const at::Tensor &source, bool) {
  TORCH_CHECK(self.defined(), "self is undefined");
  TORCH_CHECK(source.defined(), "src is undefined");
  if (self.is_same(source)) return self;
  check_copy(self, source);
  if (self.numel() == 0) return self;
  if (self.is_complex() != source.is_complex() && source.is_complex() && self.scalar_type() != at::kBool) {
    TORCH_WARN_ONCE("Casting complex values to real discards the imaginary part");
  }
  if (self.device().is_mps() && source.device().is_mps()) {
    copy_on_device(self, source);
  } else if (source.device().is_cpu()) {
    copy_from_cpu(self, source);
  } else if (self.device().is_cpu()) {
    copy_to_cpu(self, source);
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "copy from ", source.device(), " to ", self.device(), " is not supported");
  }
  return self;
}

at::Tensor copy_from(const at::Tensor &self, const at::Tensor &destination, bool non_blocking) {
  at::Tensor to = destination;
  return copy_(to, self, non_blocking);
}

at::Tensor copy_from_and_resize(const at::Tensor &self, const at::Tensor &destination) {
  at::Tensor to = destination;
  if (to.sizes() != self.sizes()) to.resize_(self.sizes());
  return copy_(to, self, false);
}

at::Scalar local_scalar_dense(const at::Tensor &self) {
  const at::Tensor plain = self.resolve_conj().resolve_neg();
  const mps_tensor descriptor = tensor(plain);
  TORCH_CHECK(descriptor.buffer != nullptr, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  const at::Tensor landing = at::detail::empty_cpu({}, plain.scalar_type());
  {
    ReleaseGil unlocked;
    check(mps_stream_read(stream(), descriptor.buffer, descriptor.offset, landing.mutable_data_ptr(), landing.nbytes()));
  }
  return landing.item();
}

at::Tensor &fill_scalar(at::Tensor &self, const at::Scalar &value) {
  if (self.numel() == 0) return self;
  at::assert_no_internal_overlap(self);
  check_fits(value, self.scalar_type());
  mps_tensor from = {}, to = tensor(self);
  from.dtype = to.dtype;
  from.constant = scalar(value);
  from.flags = to.flags;
  to.flags = 0;
  check(mps_op_copy(stream(), &from, &to));
  return self;
}

at::Tensor &fill_tensor(at::Tensor &self, const at::Tensor &value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(), " dimensions.");
  if (self.device() != value.device()) return fill_scalar(self, value.item());
  at::Tensor from = value;
  if (self.is_alias_of(value)) from = value.clone();
  return copy_(self, from, false);
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("copy_", TORCH_FN(copy_));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  m.impl("fill_.Scalar", TORCH_FN(fill_scalar));
  m.impl("fill_.Tensor", TORCH_FN(fill_tensor));
}

}  // namespace

}  // namespace openmps
