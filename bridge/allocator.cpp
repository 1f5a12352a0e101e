// SPDX-License-Identifier: BSD-3-Clause
//
// allocator: see allocator.h. Registered at load; the heap itself is opened by the first allocation.
#include "bridge/allocator.h"

#include <map>
#include <mutex>

#include "bridge/bridge.h"
#include "bridge/python.h"
#include "bridge/torch_version.h"

namespace openmps {

void release_buffer(void *buffer) { mps_buffer_release(static_cast<mps_buffer *>(buffer)); }

namespace {

using c10::CachingAllocator::Stat;
using c10::CachingDeviceAllocator::DeviceStats;

bool opened = false; // the device exists; before that there is nothing to count

mps_heap_statistics statistics() {
  mps_heap_statistics result = {};
  if (opened) mps_heap_get_statistics(device(), &result);
  return result;
}

void set(Stat &stat, uint64_t current, uint64_t peak, uint64_t allocated, uint64_t freed) {
  stat.current = static_cast<int64_t>(current);
  stat.peak = static_cast<int64_t>(peak);
  stat.allocated = static_cast<int64_t>(allocated);
  stat.freed = static_cast<int64_t>(freed);
}

class Heap final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t length) override {
    if (length == 0) return {nullptr, nullptr, &release_buffer, kDevice};
    mps_buffer *buffer = nullptr;
    mps_device *const on = device();
    opened = true;
    check(mps_buffer_create(on, nullptr, length, &buffer));
    void *contents = mps_buffer_contents(buffer);
    return {contents != nullptr ? contents : buffer, buffer, &release_buffer, kDevice};
  }

  // The context is not the data: raw_allocate is not offered.
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  void copy_data(void *destination, const void *source, size_t length) const override {
    {
      ReleaseGil unlocked;
      check(mps_device_synchronize(device()));
    }
    memcpy(destination, source, length);
  }

  bool initialized() override { return opened; }

  void emptyCache(c10::MempoolId_t) override {
    if (!opened) return;
    ReleaseGil unlocked;
    check(mps_heap_empty_cache(device()));
  }

  void recordStream(const c10::DataPtr &data, c10::Stream stream) override {
    if (data.get_deleter() != &release_buffer || data.get_context() == nullptr) return;
    mps_stream *used = nullptr;
    check(mps_stream_from_identifier(device(), stream.id(), &used));
    mps_buffer_record_stream(static_cast<mps_buffer *>(data.get_context()), used);
  }

  DeviceStats getDeviceStats(c10::DeviceIndex) override {
    constexpr auto aggregate = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const mps_heap_statistics heap = statistics();
    DeviceStats stats;
    set(stats.allocated_bytes[aggregate], heap.allocated, heap.allocated_peak, heap.total_allocated, heap.total_freed);
    set(stats.active_bytes[aggregate], heap.allocated, heap.allocated_peak, heap.total_allocated, heap.total_freed);
    set(stats.reserved_bytes[aggregate], heap.reserved, heap.reserved_peak, heap.reserved, 0);
    return stats;
  }

  void resetAccumulatedStats(c10::DeviceIndex) override {
    if (opened) mps_heap_reset_accumulated(device());
  }

  void resetPeakStats(c10::DeviceIndex) override {
    if (opened) mps_heap_reset_peaks(device());
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) OPENMPS_OVERRIDE_SINCE_13 {
    const uint64_t total = mps_device_get_info(device())->recommended_memory;
    const uint64_t used = statistics().driver;
    return {used < total ? total - used : 0, total};
  }
};

// Leaked on purpose: storages may be freed after static destructors ran.
Heap *const heap = new Heap;

// ---- pinned memory: plain CPU memory whose ranges are remembered ----

struct PinnedRanges {
  std::mutex mutex;
  std::map<uintptr_t, size_t> lengths; // by start address
};

PinnedRanges &ranges() {
  static PinnedRanges *const it = new PinnedRanges;
  return *it;
}

struct PinnedBlock {
  c10::DataPtr memory;
};

void release_pinned(void *context) {
  auto *block = static_cast<PinnedBlock *>(context);
  {
    std::lock_guard<std::mutex> lock(ranges().mutex);
    ranges().lengths.erase(reinterpret_cast<uintptr_t>(block->memory.get()));
  }
  delete block;
}

class Pinned final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t length) override {
    auto block = std::make_unique<PinnedBlock>();
    block->memory = c10::GetCPUAllocator()->allocate(length);
    void *data = block->memory.get();
    if (data != nullptr) {
      std::lock_guard<std::mutex> lock(ranges().mutex);
      ranges().lengths[reinterpret_cast<uintptr_t>(data)] = length;
    }
    return {data, block.release(), &release_pinned, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void *destination, const void *source, size_t length) const override { memcpy(destination, source, length); }
};

const bool registered = (c10::SetAllocator(c10::kMPS, heap), true);

}  // namespace

c10::DeviceAllocator *allocator() { return heap; }

c10::Allocator *pinned_allocator() {
  static Pinned *const it = new Pinned;
  return it;
}

bool is_pinned(const void *address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::lock_guard<std::mutex> lock(ranges().mutex);
  auto after = ranges().lengths.upper_bound(at);
  if (after == ranges().lengths.begin()) return false;
  const auto &[start, length] = *std::prev(after);
  return at < start + length;
}

}  // namespace openmps
