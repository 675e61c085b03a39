// Time, behind an interface so that tests and the virtual clock own it. Any thread may call Now().
#ifndef WEIR_ALLOCATOR_BASE_CLOCK_H_
#define WEIR_ALLOCATOR_BASE_CLOCK_H_

#include <time.h>

#include <compare>
#include <cstdint>

namespace weir {

// A time in nanoseconds: since an arbitrary start, or between two such times. May be negative.
class Nanoseconds {
 public:
  constexpr Nanoseconds() = default;
  constexpr explicit Nanoseconds(int64_t count) : count_(count) {}
  constexpr int64_t count() const { return count_; }
  friend constexpr Nanoseconds operator+(Nanoseconds a, Nanoseconds b) {
    return Nanoseconds(a.count_ + b.count_);
  }
  friend constexpr Nanoseconds operator-(Nanoseconds a, Nanoseconds b) {
    return Nanoseconds(a.count_ - b.count_);
  }
  friend constexpr auto operator<=>(Nanoseconds, Nanoseconds) = default;

 private:
  int64_t count_ = 0;
};

class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back.
  virtual Nanoseconds Now() const = 0;
};

// The machine's monotonic clock.
class RealClock final : public Clock {
 public:
  Nanoseconds Now() const override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return Nanoseconds(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
  }
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BASE_CLOCK_H_
