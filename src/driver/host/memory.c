/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory: device memory is the process's own, mapped in large pieces. Nothing is touched here: pages come when a kernel writes them,
 * on all threads, 2 MiB at a time where the system allows it. (64 MiB first written by two threads: 3.7 ms with huge pages, 15 to 22
 * ms without; filled in by the system beforehand: 10 ms, on one thread.)
 */
#include "base/os/os.h"
#include "driver/host/host.h"

mps_status mps_host_allocate(mps_driver_device *device, uint64_t length, mps_driver_memory *out_memory) {
  mps_host_device *host = (mps_host_device *)device;
  *out_memory = (mps_driver_memory){0};
  if (length > device->limits.max_buffer_length) {
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "%llu bytes are more than the device's largest buffer, %llu bytes",
                         (unsigned long long)length, (unsigned long long)device->limits.max_buffer_length);
  }
  uint64_t page = device->limits.page_bytes;
  length = (length + page - 1) / page * page;
  void *memory;
  mps_status status = mps_os_pages_map((size_t)length, &memory);
  if (status != MPS_STATUS_OK) return status;
  *out_memory = (mps_driver_memory){.contents = memory, .address = (uint64_t)(uintptr_t)memory, .length = length, .handle = memory};
  atomic_fetch_add_explicit(&host->allocated, length, memory_order_relaxed);
  return MPS_STATUS_OK;
}

void mps_host_free(mps_driver_device *device, mps_driver_memory *memory) {
  mps_host_device *host = (mps_host_device *)device;
  if (!memory->handle) return;
  mps_os_pages_unmap(memory->handle, (size_t)memory->length);
  atomic_fetch_sub_explicit(&host->allocated, memory->length, memory_order_relaxed);
  *memory = (mps_driver_memory){0};
}

void mps_host_discard(mps_driver_device *device, mps_driver_memory *memory, uint64_t offset, uint64_t length) {
  (void)device;
  mps_os_pages_discard((char *)memory->contents + offset, (size_t)length);
}

uint64_t mps_host_allocated(const mps_driver_device *device) {
  const mps_host_device *host = (const mps_host_device *)device;
  return atomic_load_explicit(&host->allocated, memory_order_relaxed);
}
