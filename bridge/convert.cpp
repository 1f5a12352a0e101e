// SPDX-License-Identifier: BSD-3-Clause
//
// convert: see convert.h.
#include <ATen/Dispatch_v2.h>

#include <array>
#include <atomic>
#include <mutex>

#include "bridge/allocator.h"
#include "bridge/generator.h"
#include "bridge/provider.h"
#include "bridge/bridge.h"
#include "bridge/python.h"

namespace openmps {

void raise(mps_status status) {
  const std::string text = mps_error_message();
  switch (status) {
    case MPS_STATUS_KERNEL_ERROR:
      throw c10::AcceleratorError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, 1, text);
    case MPS_STATUS_INTERRUPTED:
      raise_interrupt();
    case MPS_STATUS_NOT_IMPLEMENTED:
      TORCH_CHECK_NOT_IMPLEMENTED(false, text);
    case MPS_STATUS_INTERNAL_ERROR:
      TORCH_CHECK(false, "OpenMPS: internal error, please report it: ", text);
    default:
      TORCH_CHECK(false, text);
  }
}

namespace {

mps_device *open_device() {
  if (C10_UNLIKELY(mps_in_forked_child()))
    TORCH_CHECK(false, "Cannot re-initialize MPS in forked subprocess. To use MPS with multiprocessing, you must use the 'spawn' start method");
  mps_device *device = nullptr;
  check(mps_device_default(&device));
  static const bool provided = (mps_dense_set_provider(device, dense_provider()), true);
  (void)provided;
  return device;
}

}  // namespace

mps_device *device() {
  static std::atomic<mps_device *> opened{nullptr};
  mps_device *device = opened.load(std::memory_order_acquire);
  if (C10_LIKELY(device != nullptr && !mps_in_forked_child())) return device;
  device = open_device();
  opened.store(device, std::memory_order_release);
  return device;
}

mps_stream *stream() { return mps_stream_current(device()); }

namespace {

constexpr uint8_t kNoDtype = 255;

// mps_dtype by at::ScalarType.
constexpr auto kDtypes = [] {
  std::array<uint8_t, static_cast<size_t>(at::ScalarType::NumOptions)> table{};
  table.fill(kNoDtype);
  constexpr std::pair<at::ScalarType, mps_dtype> known[] = {
      {at::kBool, MPS_DTYPE_BOOL},          {at::kByte, MPS_DTYPE_U8},        {at::kUInt16, MPS_DTYPE_U16},    {at::kUInt32, MPS_DTYPE_U32},
      {at::kUInt64, MPS_DTYPE_U64},         {at::kChar, MPS_DTYPE_I8},        {at::kShort, MPS_DTYPE_I16},     {at::kInt, MPS_DTYPE_I32},
      {at::kLong, MPS_DTYPE_I64},           {at::kHalf, MPS_DTYPE_F16},       {at::kBFloat16, MPS_DTYPE_BF16}, {at::kFloat, MPS_DTYPE_F32},
      {at::kComplexHalf, MPS_DTYPE_C32},    {at::kComplexFloat, MPS_DTYPE_C64}};
  for (const auto &[type, dtype] : known) table[static_cast<size_t>(type)] = static_cast<uint8_t>(dtype);
  return table;
}();

[[noreturn]] void refuse(at::ScalarType type) {
  TORCH_CHECK_TYPE(type != at::kDouble, "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
                                        "Please use float32 instead.");
  TORCH_CHECK_TYPE(false, "Trying to convert ", type, " to the MPS backend but it does not have support for that dtype.");
}

}  // namespace

bool has_dtype(at::ScalarType type) { return static_cast<size_t>(type) < kDtypes.size() && kDtypes[static_cast<size_t>(type)] != kNoDtype; }

mps_dtype dtype(at::ScalarType type) {
  if (C10_UNLIKELY(!has_dtype(type))) refuse(type);
  return static_cast<mps_dtype>(kDtypes[static_cast<size_t>(type)]);
}

mps_scalar scalar(const at::Scalar &value) {
  if (value.isBoolean()) return mps_scalar_bool(value.to<bool>());
  if (value.isFloatingPoint()) return mps_scalar_float(value.to<double>());
  if (value.isComplex()) {
    const auto z = value.to<c10::complex<double>>();
    return mps_scalar_complex(z.real(), z.imag());
  }
  if (value.type() == at::kUInt64) return mps_scalar_uint(value.to<uint64_t>());
  return mps_scalar_int(value.to<int64_t>());
}

at::Scalar check_fits(const at::Scalar &value, at::ScalarType type) {
  at::Scalar held;
  AT_DISPATCH_V2(type, "fill_", AT_WRAP([&] { held = value.to<scalar_t>(); }), AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                 at::kBool, at::kHalf, at::kBFloat16, at::kComplexHalf);
  return held;
}

namespace {

void release_data(void *context) { delete static_cast<c10::DataPtr *>(context); }

// Memory that came to the device by its address (at::from_blob, as when a storage is written to a file): a buffer is wrapped around it,
// and takes the place of the storage's owner. What was encoded for the same bytes under another name is waited for.
mps_buffer *adopt(c10::StorageImpl &storage) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (storage.data_ptr().get_deleter() == release_buffer) return static_cast<mps_buffer *>(storage.data_ptr().get_context());
  void *const data = storage.mutable_data_ptr().get();
  if (data == nullptr || storage.nbytes() == 0) return nullptr;
  check(mps_device_synchronize(device()));
  auto owner = std::make_unique<c10::DataPtr>();
  mps_buffer *wrapped = nullptr;
  check(mps_buffer_wrap(device(), data, storage.nbytes(), release_data, owner.get(), &wrapped));
  *owner = storage.set_data_ptr({data, wrapped, &release_buffer, kDevice});
  owner.release();
  return wrapped;
}

}  // namespace

mps_buffer *buffer(const c10::StorageImpl &storage) {
  const c10::DataPtr &data = storage.data_ptr();
  if (C10_LIKELY(data.get_deleter() == release_buffer)) return static_cast<mps_buffer *>(data.get_context());
  TORCH_CHECK(storage.device_type() == c10::kMPS, "Placeholder storage has not been allocated on MPS device!");
  return adopt(const_cast<c10::StorageImpl &>(storage));
}

namespace {

// Doubles are narrowed: they come from Python numbers and 0-d tensors, as upstream's do.
void describe_constant(const at::Scalar &value, at::ScalarType type, mps_tensor *out) {
  if (type == at::kDouble) type = at::kFloat;
  if (type == at::kComplexDouble) type = at::kComplexFloat;
  out->buffer = nullptr;
  out->offset = 0;
  out->rank = 0;
  out->flags = 0;
  out->dtype = openmps::dtype(type);
  out->constant = scalar(value);
}

}  // namespace

void describe(const at::Tensor &value, mps_tensor *out, at::ScalarType common) {
  const at::TensorImpl *impl = value.unsafeGetTensorImpl();
  if (C10_UNLIKELY(impl->device_type() != c10::kMPS)) {
    TORCH_CHECK(impl->device_type() == c10::kCPU && impl->dim() == 0, "Placeholder storage has not been allocated on MPS device!");
    // Read now, so that the caller may change it afterwards.
    return describe_constant(value.item(), common != at::ScalarType::Undefined ? common : value.scalar_type(), out);
  }
  TORCH_CHECK(impl->layout() == at::kStrided, "only strided tensors are supported on MPS");
  const auto sizes = impl->sizes();
  const auto strides = impl->strides();
  TORCH_CHECK(sizes.size() <= MPS_MAX_RANK, "MPS supports tensors with dimensions <= 16, but got ", sizes.size(), ".");
  out->buffer = buffer(*impl->unsafe_storage().unsafeGetStorageImpl());
  TORCH_CHECK(out->buffer != nullptr || impl->numel() == 0, "Placeholder tensor is empty!");
  out->dtype = openmps::dtype(impl->dtype().toScalarType());
  out->offset = static_cast<uint64_t>(impl->storage_offset()) * impl->itemsize();
  out->rank = static_cast<uint8_t>(sizes.size());
  out->flags = static_cast<uint8_t>((impl->is_conj() ? MPS_TENSOR_CONJUGATE : 0) | (impl->is_neg() ? MPS_TENSOR_NEGATIVE : 0));
  out->constant = mps_scalar_int(0);
  for (size_t d = 0; d < sizes.size(); d++) {
    out->sizes[d] = sizes[d];
    out->strides[d] = strides[d];
  }
}

mps_tensor tensor(const at::Tensor &value) {
  mps_tensor out;
  describe(value, &out);
  return out;
}

const at::Tensor &Operand::undefined() {
  static const at::Tensor none;
  return none;
}

Operand::Operand(const at::Tensor &value, Mode mode, at::ScalarType common) : defined_(value.defined()) {
  if (!defined_) return;
  const at::Tensor *given = &value;
  if (C10_UNLIKELY(mode == plain && (value.is_conj() || value.is_neg()))) {
    owned_ = value.resolve_conj().resolve_neg();
    given = &owned_;
  }
  if (C10_UNLIKELY(common != at::ScalarType::Undefined && value.dim() == 0 && value.device().is_mps() && value.scalar_type() != common)) {
    owned_ = given->to(common);
    given = &owned_;
  }
  describe(*given, &descriptor_, common);
}

Operand::Operand(const at::Scalar &value, Mode, at::ScalarType common) : defined_(true) {
  describe_constant(value, common != at::ScalarType::Undefined ? common : value.type(), &descriptor_);
}

Operand::Operand(const at::OptionalScalarRef &value, Mode, at::ScalarType common) : defined_(value.has_value()) {
  if (!defined_) return;
  describe_constant(value.get(), common != at::ScalarType::Undefined ? common : value.get().type(), &descriptor_);
}

OperandList::OperandList(const at::ITensorListRef &values, Operand::Mode mode) {
  descriptors_.resize(values.size());
  size_t i = 0;
  for (const at::Tensor &value : values) {
    const at::Tensor *given = &value;
    if (mode == Operand::plain && (value.is_conj() || value.is_neg())) {
      owned_.push_back(value.resolve_conj().resolve_neg());
      given = &owned_.back();
    }
    describe(*given, &descriptors_[i++]);
  }
}

}  // namespace openmps
