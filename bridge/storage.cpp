// SPDX-License-Identifier: BSD-3-Clause
//
// storage: tensors without values: allocation, resizing, set_, streams of a storage.
#include "bridge/storage.h"

#include <ATen/Context.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/permute_native.h>

#include "bridge/allocator.h"
#include "bridge/bridge.h"

namespace openmps {

namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::MPS);

at::ScalarType check_type(at::ScalarType type) {
  (void)openmps::dtype(type); // the TypeError for what the device does not have
  return type;
}

void check_rank(size_t rank) { TORCH_CHECK(rank <= MPS_MAX_RANK, "MPS supports tensors with dimensions <= 16, but got ", rank, "."); }

// torch.utils.deterministic.fill_uninitialized_memory
void fill_if_asked(at::Tensor &result) {
  if (C10_LIKELY(!at::globalContext().deterministicAlgorithms() || !at::globalContext().deterministicFillUninitializedMemory())) return;
  if (result.is_floating_point() || result.is_complex()) {
    result.fill_(std::numeric_limits<double>::quiet_NaN());
  } else {
    result.view(at::kByte).fill_(result.scalar_type() == at::kBool ? 1 : 0xff);
  }
}

at::Tensor make(at::IntArrayRef sizes, at::ScalarType type, std::optional<c10::MemoryFormat> format) {
  check_rank(sizes.size());
  at::Tensor result(at::detail::empty_generic(sizes, allocator(), kKeys, check_type(type), format));
  fill_if_asked(result);
  return result;
}

at::Tensor make_strided(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
  check_rank(sizes.size());
  at::Tensor result(at::detail::empty_strided_generic(sizes, strides, allocator(), kKeys, check_type(type)));
  fill_if_asked(result);
  return result;
}

void check_options(std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "only strided tensors are supported on MPS");
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  TORCH_CHECK(!device.has_value() || device->index() <= 0, "Expected a MPS device, but got ", *device);
}

at::Tensor empty_memory_format(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                               std::optional<at::Device> device, std::optional<bool> pin_memory, std::optional<at::MemoryFormat> format) {
  check_options(layout, device, pin_memory);
  return make(sizes, c10::dtype_or_default(type), format);
}

at::Tensor empty_with_strides(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                              std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pin_memory) {
  check_options(layout, device, pin_memory);
  return make_strided(sizes, strides, c10::dtype_or_default(type));
}

// Sizes and strides, and a storage large enough for them.
void resize(at::TensorImpl *self, at::IntArrayRef sizes, at::OptionalIntArrayRef strides) {
  if (self->sizes() == sizes && (!strides.has_value() || self->strides() == *strides)) return;
  const size_t item = self->itemsize();
  size_t needed;
  if (strides.has_value()) {
    self->set_sizes_and_strides(sizes, *strides);
    needed = at::detail::computeStorageNbytes(sizes, *strides, item, static_cast<size_t>(self->storage_offset()));
  } else {
    self->set_sizes_contiguous(sizes);
    needed = at::detail::computeStorageNbytesContiguous(sizes, item, static_cast<size_t>(self->storage_offset()));
  }
  if (self->numel() == 0) return;
  const at::Storage &storage = self->unsafe_storage();
  TORCH_CHECK(storage, "Tensor: invalid null storage");
  if (needed > storage.nbytes()) resize_storage(storage.unsafeGetStorageImpl(), needed);
}

const at::Tensor &resize_(const at::Tensor &self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  check_rank(sizes.size());
  at::TensorImpl *impl = self.unsafeGetTensorImpl();
  resize(impl, sizes, std::nullopt);
  if (format.has_value()) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve, "Unsupported memory format", *format);
    impl->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor &set_storage(at::Tensor &self, at::Storage storage, int64_t offset, at::IntArrayRef sizes, at::IntArrayRef strides) {
  at::native::checkSetStorage(self, storage, offset, sizes, strides);
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  resize(self.unsafeGetTensorImpl(), sizes, strides.data() != nullptr ? at::OptionalIntArrayRef(strides) : at::OptionalIntArrayRef());
  return self;
}

at::Tensor &set_nothing(at::Tensor &self) {
  at::Storage storage(at::Storage::use_byte_size_t(), 0, allocator(), true);
  self.set_(std::move(storage), 0, {0}, {});
  return self;
}

void record_stream(at::Tensor &self, at::Stream stream) {
  allocator()->recordStream(self.storage().data_ptr(), c10::Stream::unpack3(stream.id(), stream.device_index(), stream.device_type()));
}

// Copying on write needs a storage whose owner is its address; ours is the buffer, so the copy is made now.
at::Tensor lazy_clone(const at::Tensor &self) { return self.clone(); }

// A tensor of zeros without memory, for gradients that are nothing.
at::Tensor efficient_zero(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout> layout, std::optional<at::Device> device,
                          std::optional<bool> pin_memory) {
  check_options(layout, device, pin_memory);
  check_rank(sizes.size());
  static at::native::ZeroTensorAllocator nothing(kDevice);  // storages keep its address
  return at::detail::empty_generic(sizes, &nothing, kKeys | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor), check_type(c10::dtype_or_default(type)), std::nullopt);
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("_efficientzerotensor", TORCH_FN(efficient_zero));
  m.impl("permute", TORCH_FN(at::native::permute));
  m.impl("_lazy_clone", TORCH_FN(lazy_clone));
  m.impl("empty.memory_format", TORCH_FN(empty_memory_format));
  m.impl("empty_strided", TORCH_FN(empty_with_strides));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("set_", TORCH_FN(set_nothing));
  m.impl("record_stream", TORCH_FN(record_stream));
}

}  // namespace

at::Tensor empty(at::IntArrayRef sizes, const at::TensorOptions &options) {
  return make(sizes, c10::typeMetaToScalarType(options.dtype()), options.memory_format_opt());
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions &options) {
  return make_strided(sizes, strides, c10::typeMetaToScalarType(options.dtype()));
}

void resize_storage(c10::StorageImpl *storage, size_t length) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  c10::DataPtr fresh = allocator()->allocate(length);
  const size_t kept = std::min(length, storage->nbytes());
  if (kept != 0) {
    check(mps_stream_copy(stream(), buffer(*storage), 0, static_cast<mps_buffer *>(fresh.get_context()), 0, kept));
  }
  storage->set_data_ptr_noswap(std::move(fresh));
  storage->set_nbytes(length);
}

at::Storage new_storage(size_t length) {
  return at::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), length, allocator()->allocate(length), allocator(), true));
}

}  // namespace openmps
