/* SPDX-License-Identifier: BSD-3-Clause
 *
 * convert: values of PyTorch as values of OpenMPS, and statuses of OpenMPS as exceptions of PyTorch.
 *
 * An mps_tensor borrows the storage's buffer; an Operand also owns what the conversion had to make. Nothing here waits for the device.
 */
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <type_traits>

#include "openmps/device.h"
#include "openmps/stream.h"
#include "openmps/tensor.h"

namespace openmps {

inline const c10::Device kDevice{c10::kMPS, 0};

// Throws what PyTorch users expect for a failing status: torch.AcceleratorError for a kernel's error, KeyboardInterrupt for an
// interrupted wait, NotImplementedError for types without a kernel, else RuntimeError.
[[noreturn]] void raise(mps_status status);
inline void check(mps_status status) {
  if (C10_UNLIKELY(status != MPS_STATUS_OK)) raise(status);
}

// The process's device, opened at the first call; in a forked child a RuntimeError.
mps_device *device();
// The calling thread's current stream.
mps_stream *stream();

// TypeError with upstream's text for float64, complex128 and types that no kernel knows.
mps_dtype dtype(at::ScalarType type);
bool has_dtype(at::ScalarType type);
mps_scalar scalar(const at::Scalar &value);
// RuntimeError with PyTorch's text for a value that the type cannot hold; else the value as the type holds it.
at::Scalar check_fits(const at::Scalar &value, at::ScalarType type);

// The buffer behind a storage; nullptr for an empty one. RuntimeError for memory that is not OpenMPS's.
mps_buffer *buffer(const c10::StorageImpl &storage);

// Fills `out`. A 0-d CPU tensor becomes a constant, of dtype `common` if given; any other CPU tensor is an error.
void describe(const at::Tensor &value, mps_tensor *out, at::ScalarType common = at::ScalarType::Undefined);
mps_tensor tensor(const at::Tensor &value);

// The generator's, or the default one's, when it is not given.
mps_generator *generator(const std::optional<at::Generator> &value);

// New tensors on the device; float64 and rank > 16 are refused with upstream's texts.
at::Tensor empty(at::IntArrayRef sizes, const at::TensorOptions &options);
at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions &options);

// A tensor argument of a C operator for the length of its call.
class Operand {
 public:
  enum Mode {
    plain,   // conjugate and negative bits are resolved by a copy first
    flagged, // they go along in the descriptor
    output,  // written
  };
  // `common`: the dtype that the operator computes in; 0-d tensors, which do not take part in promotion by their size, are brought to it.
  Operand(const at::Tensor &value, Mode mode, at::ScalarType common = at::ScalarType::Undefined);
  Operand(const std::optional<at::Tensor> &value, Mode mode, at::ScalarType common = at::ScalarType::Undefined)
      : Operand(value.has_value() ? *value : undefined(), mode, common) {}
  Operand(const at::OptionalTensorRef &value, Mode mode, at::ScalarType common = at::ScalarType::Undefined)
      : Operand(value.has_value() ? *value : undefined(), mode, common) {}
  // A number in a tensor's place, as in `x > 2`.
  Operand(const at::Scalar &value, Mode mode, at::ScalarType common = at::ScalarType::Undefined);
  Operand(const at::OptionalScalarRef &value, Mode mode, at::ScalarType common = at::ScalarType::Undefined);
  Operand(const Operand &) = delete;
  Operand &operator=(const Operand &) = delete;

  const mps_tensor *pointer() const {
    TORCH_CHECK(defined_, "expected a tensor, but got an undefined one");
    return &descriptor_;
  }
  const mps_tensor *pointer_or_null() const { return defined_ ? &descriptor_ : nullptr; }

 private:
  static const at::Tensor &undefined();
  bool defined_;
  at::Tensor owned_;
  mps_tensor descriptor_;
};

class OperandList {
 public:
  OperandList(const at::ITensorListRef &values, Operand::Mode mode);
  OperandList(at::TensorList values, Operand::Mode mode) : OperandList(at::ITensorListRef(values), mode) {}
  OperandList(const std::vector<at::Tensor> &values, Operand::Mode mode) : OperandList(at::TensorList(values), mode) {}
  const mps_tensor *data() const { return descriptors_.data(); }
  uint32_t count() const { return static_cast<uint32_t>(descriptors_.size()); }

 private:
  std::vector<at::Tensor> owned_;
  std::vector<mps_tensor> descriptors_;
};

// Plain values. SymInts and Scalars are taken as numbers.
template <class T, class V>
T value(const V &v) {
  if constexpr (std::is_same_v<T, mps_scalar>) {
    return scalar(v);
  } else if constexpr (std::is_same_v<T, mps_dtype>) {
    return openmps::dtype(v);
  } else if constexpr (std::is_same_v<V, c10::SymInt>) {
    return static_cast<T>(v.guard_int(__FILE__, __LINE__));
  } else if constexpr (std::is_same_v<V, at::Scalar>) {
    return v.template to<T>();
  } else {
    return static_cast<T>(v);
  }
}

template <class T>
class Optional {
 public:
  template <class V>
  explicit Optional(const V &v) {
    if (v.has_value()) value_ = value<T>(get(v));
  }
  const T *pointer() const { return value_.has_value() ? &*value_ : nullptr; }

 private:
  static const at::Scalar &get(const at::OptionalScalarRef &v) { return v.get(); }
  template <class V>
  static const V &get(const std::optional<V> &v) {
    return *v;
  }
  std::optional<T> value_;
};

// A list of numbers; data() is NULL only for an optional list that is absent.
template <class T>
class List {
 public:
  explicit List(at::ArrayRef<T> values) : view_(values) {}
  template <class V, std::enable_if_t<!std::is_convertible_v<const V &, at::ArrayRef<T>>, int> = 0>
  explicit List(const V &values) {
    if constexpr (requires { values.has_value(); }) {
      present_ = values.has_value();
      if (present_) copy(*values);
    } else {
      copy(values);
    }
  }
  // An ArrayRef of a braced list would not outlive the declaration.
  explicit List(std::initializer_list<T> values) { copy(values); }
  List(const List &) = delete;
  List &operator=(const List &) = delete;
  const T *data() const { return !present_ ? nullptr : view_.empty() ? &nothing_ : view_.data(); }
  uint32_t count() const { return static_cast<uint32_t>(view_.size()); }

 private:
  template <class V>
  void copy(const V &values) {
    for (const auto &v : values) own_.push_back(value<T>(v));
    view_ = own_;
  }
  bool present_ = true;
  T nothing_{};
  c10::SmallVector<T, 4> own_;
  at::ArrayRef<T> view_;
};

class String {
 public:
  explicit String(std::string_view text) : text_(text) {}
  template <class V>
  explicit String(const std::optional<V> &text) : present_(text.has_value()), text_(present_ ? std::string(*text) : std::string()) {}
  const char *text() const { return present_ ? text_.c_str() : nullptr; }

 private:
  bool present_ = true;
  std::string text_;
};

}  // namespace openmps
