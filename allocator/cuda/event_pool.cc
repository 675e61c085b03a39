#include "allocator/cuda/event_pool.h"

namespace weir {

absl::StatusOr<Event> EventPool::Record(Stream stream) {
  Event event;
  mutex_.Lock();
  if (!free_.empty()) {
    event = free_.back();
    free_.pop_back();
  }
  mutex_.Unlock();
  if (event.handle == nullptr) {
    absl::StatusOr<Event> created = driver_.CreateEvent();
    if (!created.ok()) return created.status();
    event = *created;
  }
  absl::Status status = driver_.RecordEvent(event, stream);
  if (!status.ok()) {
    Return(event);
    return status;
  }
  return event;
}

void EventPool::Return(Event event) {
  mutex_.Lock();
  free_.push_back(event);
  mutex_.Unlock();
}

}  // namespace weir
