#include "offload/turn_queue.h"

#include "allocator/wait_scope.h"

namespace weir {

TurnQueue::Turn::Turn(TurnQueue& queue) : queue_(queue) {
  LockHolder lock(&queue_.mutex_);
  number_ = ++queue_.arrivals_;
  queue_.waiting_.insert(number_);
}

void TurnQueue::Turn::Take() {
  taken_ = true;
  {
    LockHolder lock(&queue_.mutex_);
    if (queue_.IsNext(number_)) {
      queue_.taken_ = true;
      queue_.waiting_.erase(number_);
      return;
    }
  }
  WaitScope waiting(trace::WaitCause::kTurn);  // may release the GIL, so not under the mutex
  LockHolder lock(&queue_.mutex_);
  queue_.Wait(number_);
}

bool TurnQueue::Turn::TryTake() {
  LockHolder lock(&queue_.mutex_);
  if (!queue_.IsNext(number_)) return false;
  taken_ = true;
  queue_.taken_ = true;
  queue_.waiting_.erase(number_);
  return true;
}

void TurnQueue::Wait(uint64_t number) {
  while (!IsNext(number)) mutex_.Wait(&changed_);
  taken_ = true;
  waiting_.erase(number);
}

TurnQueue::Turn::~Turn() {
  LockHolder lock(&queue_.mutex_);
  if (taken_) {
    queue_.taken_ = false;
  } else {
    queue_.waiting_.erase(number_);
  }
  ++queue_.finished_;
  queue_.changed_.SignalAll();
}

bool TurnQueue::Turn::StepAside() {
  {
    LockHolder lock(&queue_.mutex_);
    if (queue_.waiting_.empty() || *queue_.waiting_.rbegin() < number_) return false;
  }
  WaitScope waiting(trace::WaitCause::kTurn);
  LockHolder lock(&queue_.mutex_);
  uint64_t seen = queue_.finished_;
  queue_.taken_ = false;
  queue_.changed_.SignalAll();
  while (queue_.finished_ == seen) queue_.mutex_.Wait(&queue_.changed_);
  queue_.waiting_.insert(number_);
  queue_.Wait(number_);
  return true;
}

}  // namespace weir
