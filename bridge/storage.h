/* SPDX-License-Identifier: BSD-3-Clause
 *
 * storage: what Python's storage classes cannot do for mps in a stock wheel.
 */
#pragma once

#include <c10/core/Storage.h>

namespace openmps {

c10::Storage new_storage(size_t length);
// Keeps the bytes that fit. The old memory goes back to the heap.
void resize_storage(c10::StorageImpl *storage, size_t length);

}  // namespace openmps
