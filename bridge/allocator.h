/* SPDX-License-Identifier: BSD-3-Clause
 *
 * allocator: PyTorch's allocators over the caching heap.
 *
 * A DataPtr of an mps storage holds the buffer's CPU address as data and the mps_buffer as context.
 */
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

namespace openmps {

// The deleter of every mps DataPtr; its context is an mps_buffer.
void release_buffer(void *buffer);
c10::DeviceAllocator *allocator();
// Page-locked memory's counterpart: CPU memory that is_pinned() knows.
c10::Allocator *pinned_allocator();
bool is_pinned(const void *address);

}  // namespace openmps
