// The quantities of Weir, each its own type: bytes, device addresses, pages, streams.
// Constructors are explicit and `count()` / `value()` is the only way out, so that two integers cannot be
// swapped in a call. Everything is constexpr, trivially copyable and free of allocation; any thread may use
// it. Overflow and underflow are programmer errors: debug builds abort (WEIR_DCHECK).
#ifndef WEIR_ALLOCATOR_BASE_UNITS_H_
#define WEIR_ALLOCATOR_BASE_UNITS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "allocator/base/check.h"

namespace weir {

// A number of bytes. Never negative.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(uint64_t count) : count_(count) {}
  static constexpr Bytes Max() { return Bytes(std::numeric_limits<uint64_t>::max()); }

  constexpr uint64_t count() const { return count_; }
  constexpr bool IsZero() const { return count_ == 0; }
  constexpr bool IsMultipleOf(Bytes unit) const { return count_ % unit.count_ == 0; }
  // The next multiple of `unit` (not zero) at or above this.
  constexpr Bytes RoundedUpTo(Bytes unit) const {
    return Bytes((count_ + unit.count_ - 1) / unit.count_ * unit.count_);
  }
  constexpr Bytes RoundedDownTo(Bytes unit) const { return Bytes(count_ / unit.count_ * unit.count_); }

  constexpr Bytes& operator+=(Bytes other) {
    WEIR_DCHECK(count_ + other.count_ >= count_);
    count_ += other.count_;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    WEIR_DCHECK(count_ >= other.count_);
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend constexpr Bytes operator*(Bytes a, uint64_t times) { return Bytes(a.count_ * times); }
  friend constexpr Bytes operator*(uint64_t times, Bytes a) { return a * times; }
  friend constexpr Bytes operator/(Bytes a, uint64_t parts) { return Bytes(a.count_ / parts); }
  friend constexpr uint64_t operator/(Bytes a, Bytes b) { return a.count_ / b.count_; }
  friend constexpr Bytes operator%(Bytes a, Bytes b) { return Bytes(a.count_ % b.count_); }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;

  template <typename H>
  friend H AbslHashValue(H state, Bytes bytes) {
    return H::combine(std::move(state), bytes.count_);
  }

 private:
  uint64_t count_ = 0;
};

// a - b, or zero where b is larger.
constexpr Bytes SaturatingSubtract(Bytes a, Bytes b) { return a > b ? a - b : Bytes(); }

constexpr Bytes KiB(uint64_t n) { return Bytes(n << 10); }
constexpr Bytes MiB(uint64_t n) { return Bytes(n << 20); }
constexpr Bytes GiB(uint64_t n) { return Bytes(n << 30); }

// An address on the device, as the driver gives it (CUdeviceptr). Zero is no address.
class DeviceAddr {
 public:
  constexpr DeviceAddr() = default;
  constexpr explicit DeviceAddr(uint64_t value) : value_(value) {}
  static DeviceAddr Of(const void* pointer) { return DeviceAddr(reinterpret_cast<uintptr_t>(pointer)); }

  constexpr uint64_t value() const { return value_; }
  constexpr bool IsNull() const { return value_ == 0; }
  void* pointer() const { return reinterpret_cast<void*>(static_cast<uintptr_t>(value_)); }

  constexpr DeviceAddr& operator+=(Bytes offset) {
    value_ += offset.count();
    return *this;
  }
  friend constexpr DeviceAddr operator+(DeviceAddr a, Bytes offset) { return a += offset; }
  friend constexpr DeviceAddr operator-(DeviceAddr a, Bytes offset) {
    return DeviceAddr(a.value_ - offset.count());
  }
  // Distance from `b` up to `a`; `a` is not below `b`.
  friend constexpr Bytes operator-(DeviceAddr a, DeviceAddr b) {
    WEIR_DCHECK(a.value_ >= b.value_);
    return Bytes(a.value_ - b.value_);
  }
  friend constexpr auto operator<=>(DeviceAddr, DeviceAddr) = default;

  template <typename H>
  friend H AbslHashValue(H state, DeviceAddr addr) {
    return H::combine(std::move(state), addr.value_);
  }

 private:
  uint64_t value_ = 0;
};

// The page of address arithmetic: the driver's minimum VMM granularity on every data-centre and desktop part,
// 2 MiB. `address >> kPageShift` indexes the address table.
inline constexpr int kPageShift = 21;
inline constexpr Bytes kPageBytes = MiB(2);
static_assert(kPageBytes == Bytes(uint64_t{1} << kPageShift));

// A number of 2 MiB pages.
class PageCount {
 public:
  constexpr PageCount() = default;
  constexpr explicit PageCount(uint64_t count) : count_(count) {}
  // The fewest pages that hold `bytes`.
  static constexpr PageCount ToHold(Bytes bytes) {
    return PageCount(bytes.RoundedUpTo(kPageBytes) / kPageBytes);
  }

  constexpr uint64_t count() const { return count_; }
  constexpr Bytes bytes() const { return kPageBytes * count_; }

  constexpr PageCount& operator+=(PageCount other) {
    count_ += other.count_;
    return *this;
  }
  constexpr PageCount& operator-=(PageCount other) {
    WEIR_DCHECK(count_ >= other.count_);
    count_ -= other.count_;
    return *this;
  }
  friend constexpr PageCount operator+(PageCount a, PageCount b) { return a += b; }
  friend constexpr PageCount operator-(PageCount a, PageCount b) { return a -= b; }
  friend constexpr auto operator<=>(PageCount, PageCount) = default;

 private:
  uint64_t count_ = 0;
};

// A stream, known only by the driver's handle (CUstream / cudaStream_t as an integer). Zero is the legacy
// default stream. Two streams are the same if their handles are; a destroyed stream's handle may come back.
class Stream {
 public:
  constexpr Stream() = default;
  constexpr explicit Stream(uintptr_t handle) : handle_(handle) {}
  static Stream Of(const void* handle) { return Stream(reinterpret_cast<uintptr_t>(handle)); }

  constexpr uintptr_t handle() const { return handle_; }
  constexpr bool IsDefault() const { return handle_ == 0; }
  friend constexpr auto operator<=>(Stream, Stream) = default;

  template <typename H>
  friend H AbslHashValue(H state, Stream stream) {
    return H::combine(std::move(state), stream.handle_);
  }

 private:
  uintptr_t handle_ = 0;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BASE_UNITS_H_
