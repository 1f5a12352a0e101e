// SPDX-License-Identifier: BSD-3-Clause
//
// hooks: what torch._C._mps_* and torch.accelerator ask of the backend. Queries open no device.
#include <atomic>
#include <sstream>

#include "bridge/allocator.h"
#include "bridge/event.h"
#include "bridge/generator.h"
#include "bridge/bridge.h"
#include "bridge/python.h"
#include "bridge/torch_version.h"

namespace openmps {

namespace {

mps_heap_statistics statistics() {
  mps_heap_statistics result = {};
  if (allocator()->initialized()) mps_heap_get_statistics(device(), &result);
  return result;
}

// Upstream's traces are signposts, which nobody reads here; the calls keep their rules.
std::atomic<bool> tracing{false};

}  // namespace

struct MPSHooks final : at::MPSHooksInterface {
  OPENMPS_HOOKS_CONSTRUCTOR(MPSHooks)

  void init() const override { device(); }
  bool hasMPS() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return allocator()->initialized(); }
  // Programs ask this to choose a code path; ours are those of the newest system that torch knows.
  bool isOnMacOSorNewer(unsigned major, unsigned minor) const override { return major < 26 || (major == 26 && minor <= 4); }

  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex index) const override { checkIndex(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    checkIndex(index);
    return 0;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }

  const at::Generator &getDefaultGenerator(c10::DeviceIndex) const override { return default_generator(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return new_generator(); }

  at::Allocator *getMPSDeviceAllocator() const override { return allocator(); }
  at::Allocator *getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  bool isPinnedPtr(const void *data) const override { return is_pinned(data); }
  c10::Device getDeviceFromPtr(void *) const override { return kDevice; }

  void deviceSynchronize() const override {
    if (!allocator()->initialized()) return;
    ReleaseGil unlocked;
    check(mps_device_synchronize(device()));
  }
  void commitStream() const override { mps_stream_commit(stream()); }
  // There is no Metal object behind these; C++ extensions that encode Metal commands themselves cannot work.
  void *getCommandBuffer() const override { TORCH_CHECK_NOT_IMPLEMENTED(false, "OpenMPS has no MTLCommandBuffer"); }
  void *getDispatchQueue() const override { TORCH_CHECK_NOT_IMPLEMENTED(false, "OpenMPS has no dispatch_queue_t"); }

  void emptyCache() const override { allocator()->emptyCache({0, 0}); }
  size_t getCurrentAllocatedMemory() const override { return statistics().allocated; }
  size_t getDriverAllocatedMemory() const override { return statistics().driver; }
  size_t getRecommendedMaxMemory() const override { return mps_device_get_info(device())->recommended_memory; }
  size_t getMaxBufferLength() const OPENMPS_OVERRIDE_SINCE_13 { return mps_device_get_info(device())->max_buffer_length; }
  void setMemoryFraction(double ratio) const override { check(mps_heap_set_high_watermark_ratio(device(), ratio)); }

  void profilerStartTrace(const std::string &mode, bool) const override {
    TORCH_CHECK(!tracing, "Tracing Signposts is already enabled");
    std::stringstream items(mode);
    for (std::string item; std::getline(items, item, ',');)
      TORCH_CHECK(item.empty() || item == "interval" || item == "event", "Invalid Signpost trace mode: ", item);
    tracing = true;
  }
  void profilerStopTrace() const override { tracing = false; }

  uint32_t acquireEvent(bool timing) const override { return acquire_event(timing); }
  void releaseEvent(uint32_t number) const override { release_event(number); }
  void recordEvent(uint32_t number) const override { record_event(number, stream()); }
  void waitForEvent(uint32_t number) const override { wait_for_event(number, stream()); }
  void synchronizeEvent(uint32_t number) const override { synchronize_event(number); }
  bool queryEvent(uint32_t number) const override { return query_event(number); }
  double elapsedTimeOfEvents(uint32_t start, uint32_t end) const override { return elapsed_time(start, end); }

 private:
  static void checkIndex(c10::DeviceIndex index) {
    TORCH_CHECK(index <= 0, "Expected a MPS device, but got mps:", static_cast<int>(index));
  }
};

}  // namespace openmps

namespace at {
using openmps::MPSHooks;
C10_REGISTER_CLASS(MPSHooksRegistry, MPSHooks, MPSHooks)
}  // namespace at
