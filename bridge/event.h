/* SPDX-License-Identifier: BSD-3-Clause
 *
 * event: events by number, as torch.mps.Event and the device guard know them. Numbers grow from 1; a released one is never valid again.
 */
#pragma once

#include <cstdint>

#include "openmps/stream.h"

namespace openmps {

uint32_t acquire_event(bool timing);
void release_event(uint32_t number);
void record_event(uint32_t number, mps_stream *stream);
void wait_for_event(uint32_t number, mps_stream *stream);
void synchronize_event(uint32_t number);
bool query_event(uint32_t number);
// Milliseconds; RuntimeError with upstream's texts when one of the two cannot tell.
double elapsed_time(uint32_t start, uint32_t end);

}  // namespace openmps
