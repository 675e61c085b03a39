#include "allocator/frame_pool.h"

#include <algorithm>
#include <utility>

#include "allocator/base/check.h"
#include "allocator/base/log.h"

namespace weir {

FrameReservation::FrameReservation(FrameReservation&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), frames_(std::move(other.frames_)) {
  other.frames_.clear();
}

FrameReservation& FrameReservation::operator=(FrameReservation&& other) noexcept {
  if (this != &other) {
    GiveBack();
    pool_ = std::exchange(other.pool_, nullptr);
    frames_ = std::move(other.frames_);
    other.frames_.clear();
  }
  return *this;
}

FrameReservation::~FrameReservation() { GiveBack(); }

void FrameReservation::GiveBack() {
  if (pool_ != nullptr && !frames_.empty()) pool_->Return(frames_);
  frames_.clear();
}

FrameHandle FrameReservation::Take() {
  WEIR_CHECK(!frames_.empty());
  FrameHandle frame = frames_.back();
  frames_.pop_back();
  return frame;
}

void FrameReservation::PutBack(std::vector<FrameHandle> frames) {
  frames_.insert(frames_.end(), frames.rbegin(), frames.rend());
}

FramePool::FramePool(Driver& driver, DeviceIndex device, Bytes cap)
    : driver_(driver), device_(device), cap_(cap / kPageBytes), wanted_(cap_), ceiling_(cap_) {}

PageCount FramePool::AvailableLocked() const {
  PageCount pooled(pooled_.size());
  const PageCount counted = CountedLocked();
  return ceiling_ > counted ? pooled + (ceiling_ - counted) : pooled;
}

bool FramePool::TryTakeOutside(Bytes bytes, FrameReservation making_way) {
  LockHolder lock(&mutex_);
  pooled_.insert(pooled_.end(), making_way.frames_.begin(), making_way.frames_.end());
  making_way.frames_.clear();
  const PageCount after = PageCount::ToHold(outside_ + bytes);
  while (held_ + after > ceiling_ && !pooled_.empty() && ReleaseLocked(pooled_.back())) pooled_.pop_back();
  if (held_ + after > ceiling_) return false;
  outside_ += bytes;
  peak_held_ = std::max(peak_held_, CountedLocked());
  return true;
}

void FramePool::GiveOutside(Bytes bytes) {
  LockHolder lock(&mutex_);
  outside_ -= bytes;
}

std::optional<FrameReservation> FramePool::TryReserve(PageCount pages) {
  LockHolder lock(&mutex_);
  if (AvailableLocked() < pages) return std::nullopt;
  // New frames are made before pooled ones are taken, so that a refusal undoes itself.
  while (pooled_.size() < pages.count()) {
    absl::StatusOr<FrameHandle> frame = driver_.CreateFrame(device_, kPageBytes);
    if (!frame.ok()) {
      // Another process or a library took the room that the cap promised: hold what we have, evict from now on.
      ceiling_ = CountedLocked();
      Log(LogLevel::kInfo, "the driver refused a frame at ", held_.bytes().count(),
          " bytes held: ", frame.status().message());
      return std::nullopt;
    }
    pooled_.push_back(*frame);
    held_ += PageCount(1);
    peak_held_ = std::max(peak_held_, CountedLocked());
  }
  std::vector<FrameHandle> taken(pooled_.end() - static_cast<ptrdiff_t>(pages.count()), pooled_.end());
  pooled_.erase(pooled_.end() - static_cast<ptrdiff_t>(pages.count()), pooled_.end());
  std::reverse(taken.begin(),
               taken.end());  // Take() hands out the oldest first: sequential frames stay sequential
  return FrameReservation(this, std::move(taken));
}

PageCount FramePool::Available() const {
  LockHolder lock(&mutex_);
  return AvailableLocked();
}

void FramePool::Return(const std::vector<FrameHandle>& frames) {
  LockHolder lock(&mutex_);
  pooled_.insert(pooled_.end(), frames.rbegin(), frames.rend());
  WEIR_DCHECK(PageCount(pooled_.size()) <= held_);
  if (CountedLocked() > wanted_) ReleasePooledLocked(wanted_);
}

bool FramePool::ReleaseLocked(FrameHandle frame) {
  absl::Status status = driver_.ReleaseFrame(frame);
  if (!status.ok()) {  // it still exists, so it still counts
    Log(LogLevel::kWarn, "a frame could not be released: ", status.message());
    return false;
  }
  held_ -= PageCount(1);
  return true;
}

// Until `keep` pages count or no frame is pooled.
void FramePool::ReleasePooledLocked(PageCount keep) {
  std::erase_if(pooled_, [&](FrameHandle frame) {
    mutex_.AssertHeld();
    return CountedLocked() > keep && ReleaseLocked(frame);
  });
}

void FramePool::Trim() {
  LockHolder lock(&mutex_);
  ReleasePooledLocked(PageCount());
  ceiling_ = wanted_;
}

bool FramePool::RaiseCeiling() {
  LockHolder lock(&mutex_);
  if (ceiling_ == wanted_) return false;
  ceiling_ = wanted_;
  return true;
}

void FramePool::WantCap(Bytes cap) {
  LockHolder lock(&mutex_);
  wanted_ = ceiling_ = PageCount(cap / kPageBytes);
  lowering_.store(wanted_ < cap_, std::memory_order_relaxed);
}

bool FramePool::CommitCap() {
  LockHolder lock(&mutex_);
  ReleasePooledLocked(wanted_);
  if (CountedLocked() > wanted_) return false;
  cap_ = wanted_;
  lowering_.store(false, std::memory_order_relaxed);
  return true;
}

void FramePool::KeepCap() {
  LockHolder lock(&mutex_);
  wanted_ = ceiling_ = cap_;
  lowering_.store(false, std::memory_order_relaxed);
}

PageCount FramePool::cap() const {
  LockHolder lock(&mutex_);
  return cap_;
}

PageCount FramePool::wanted() const {
  LockHolder lock(&mutex_);
  return wanted_;
}

PageCount FramePool::held() const {
  LockHolder lock(&mutex_);
  return held_;
}

PageCount FramePool::counted() const {
  LockHolder lock(&mutex_);
  return CountedLocked();
}

PageCount FramePool::peak_held() const {
  LockHolder lock(&mutex_);
  return peak_held_;
}

void FramePool::ResetPeak() {
  LockHolder lock(&mutex_);
  peak_held_ = CountedLocked();
}

PageCount FramePool::pooled() const {
  LockHolder lock(&mutex_);
  return PageCount(pooled_.size());
}

PageCount FramePool::ceiling() const {
  LockHolder lock(&mutex_);
  const PageCount outside = PageCount::ToHold(outside_);
  return ceiling_ > outside ? ceiling_ - outside : PageCount();
}

}  // namespace weir
