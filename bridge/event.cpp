// SPDX-License-Identifier: BSD-3-Clause
//
// event: see event.h. An entry is shared with calls in flight, so that a release in another thread cannot pull it away.
#include "bridge/event.h"

#include <memory>
#include <mutex>
#include <unordered_map>

#include "bridge/bridge.h"
#include "bridge/python.h"

namespace openmps {

namespace {

struct Event {
  Event(mps_event *event, bool timing) : event(event), timing(timing) {}
  ~Event() { mps_event_destroy(event); }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
  mps_event *const event;
  const bool timing;
  std::atomic<bool> recorded{false};
};

struct Events {
  std::mutex mutex;
  uint32_t last = 0;
  std::unordered_map<uint32_t, std::shared_ptr<Event>> by_number;
};

Events &events() {
  static Events *const it = new Events;
  return *it;
}

std::shared_ptr<Event> find(uint32_t number) {
  std::lock_guard<std::mutex> lock(events().mutex);
  const auto found = events().by_number.find(number);
  TORCH_CHECK(found != events().by_number.end(), "Invalid Event ID: ", number);
  return found->second;
}

}  // namespace

uint32_t acquire_event(bool timing) {
  mps_event *event = nullptr;
  check(mps_event_create(device(), timing, &event));
  auto entry = std::make_shared<Event>(event, timing);
  std::lock_guard<std::mutex> lock(events().mutex);
  events().by_number.emplace(++events().last, std::move(entry));
  return events().last;
}

void release_event(uint32_t number) {
  const std::shared_ptr<Event> kept = find(number); // destroyed outside of the lock
  std::lock_guard<std::mutex> lock(events().mutex);
  events().by_number.erase(number);
}

void record_event(uint32_t number, mps_stream *stream) {
  const auto entry = find(number);
  check(mps_event_record(entry->event, stream));
  entry->recorded = true;
  mps_stream_commit(stream);
}

void wait_for_event(uint32_t number, mps_stream *stream) { check(mps_event_wait(find(number)->event, stream)); }

void synchronize_event(uint32_t number) {
  const auto entry = find(number);
  ReleaseGil unlocked;
  check(mps_event_synchronize(entry->event));
}

bool query_event(uint32_t number) { return mps_event_query(find(number)->event); }

double elapsed_time(uint32_t start, uint32_t end) {
  const auto first = find(start), second = find(end);
  TORCH_CHECK(first->timing && second->timing, "Events were not created with argument 'enable_timing=True'");
  TORCH_CHECK(first->recorded && second->recorded, "Both events must be recorded before calculating elapsed time.");
  double milliseconds = 0;
  {
    ReleaseGil unlocked;
    check(mps_event_synchronize(first->event));
    check(mps_event_synchronize(second->event));
    check(mps_event_elapsed(first->event, second->event, &milliseconds));
  }
  TORCH_CHECK(milliseconds >= 0, "End event ", end, " was not recorded after start event ", start);
  return milliseconds;
}

}  // namespace openmps
