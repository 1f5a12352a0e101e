// SPDX-License-Identifier: BSD-3-Clause
//
// guard: devices, streams and events for c10. There is one device; streams are those of the runtime, by their identifier.
#include "bridge/allocator.h"
#include "bridge/event.h"
#include "bridge/bridge.h"
#include "bridge/python.h"

namespace openmps {

namespace {

c10::Stream to_c10(mps_stream *stream) { return c10::Stream(c10::Stream::UNSAFE, kDevice, mps_stream_identifier(stream)); }

mps_stream *from_c10(const c10::Stream &stream) {
  mps_stream *found = nullptr;
  check(mps_stream_from_identifier(device(), stream.id(), &found));
  return found;
}

uint32_t number(void *event) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(event)); }

void expect_mps(c10::Device device) {
  TORCH_CHECK(device.is_mps() && device.index() <= 0, "Expected a MPS device, but got ", device);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kMPS; }
  c10::Device exchangeDevice(c10::Device device) const override {
    expect_mps(device);
    return kDevice;
  }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device device) const override { expect_mps(device); }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability capability;
    uint64_t bits = 0;
    for (int i = 0; i < static_cast<int>(at::ScalarType::NumOptions); i++)
      if (has_dtype(static_cast<at::ScalarType>(i))) bits |= bit(static_cast<at::ScalarType>(i));
    capability.capability_data.capability_bits = bits;
    return capability;
  }

  // A question about the current stream does not open the device: then it is the default one.
  c10::Stream getStream(c10::Device) const override {
    return allocator()->initialized() ? to_c10(stream()) : c10::Stream(c10::Stream::DEFAULT, kDevice);
  }
  c10::Stream getDefaultStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, kDevice); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return new_stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return new_stream(); }
  c10::Stream exchangeStream(c10::Stream next) const override {
    const c10::Stream previous = getStream(kDevice);
    if (next != previous) mps_stream_set_current(device(), from_c10(next));
    return previous;
  }
  void *getStreamNativeHandle(const c10::Stream s) const override { return from_c10(s); }
  bool queryStream(const c10::Stream &s) const override { return mps_stream_query(from_c10(s)); }
  void synchronizeStream(const c10::Stream &s) const override {
    ReleaseGil unlocked;
    check(mps_stream_synchronize(from_c10(s)));
  }
  void synchronizeDevice(const c10::DeviceIndex) const override {
    ReleaseGil unlocked;
    check(mps_device_synchronize(device()));
  }
  void recordDataPtrOnStream(const c10::DataPtr &data, const c10::Stream &s) const override { allocator()->recordStream(data, s); }

  // An event is its number in the pointer's place.
  void record(void **event, const c10::Stream &s, const c10::DeviceIndex index, const c10::EventFlag flag) const override {
    TORCH_CHECK(index == -1 || index == s.device_index(), "Event device index ", static_cast<int>(index),
                " does not match recording stream's device index ", static_cast<int>(s.device_index()), ".");
    if (*event == nullptr) *event = reinterpret_cast<void *>(static_cast<uintptr_t>(acquire_event(flag == c10::EventFlag::BACKEND_DEFAULT)));
    record_event(number(*event), from_c10(s));
  }
  void block(void *event, const c10::Stream &s) const override {
    if (event != nullptr) wait_for_event(number(event), from_c10(s));
  }
  bool queryEvent(void *event) const override { return event == nullptr || query_event(number(event)); }
  void synchronizeEvent(void *event) const override {
    if (event != nullptr) synchronize_event(number(event));
  }
  double elapsedTime(void *start, void *end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start != nullptr && end != nullptr, "Both events must be recorded before calculating elapsed time.");
    return elapsed_time(number(start), number(end));
  }
  void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override {
    if (event == nullptr || mps_in_forked_child()) return;
    try {
      release_event(number(event));
    } catch (const c10::Error &) { // released before: nothing is left to do
    }
  }

 private:
  static c10::Stream new_stream() {
    mps_stream *stream = nullptr;
    check(mps_stream_from_pool(device(), &stream));
    return to_c10(stream);
  }

  static uint64_t bit(at::ScalarType type) {
    switch (type) {
#define OPENMPS_CAPABILITY(cpp, name) \
  case at::ScalarType::name:          \
    return uint64_t{1} << c10::kIndex_##name;
      AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(OPENMPS_CAPABILITY)
#undef OPENMPS_CAPABILITY
      default:
        return 0;
    }
  }
};

C10_REGISTER_GUARD_IMPL(MPS, Guard)

}  // namespace

}  // namespace openmps
