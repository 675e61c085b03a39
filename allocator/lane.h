// Who may reuse free device memory without waiting: one stream, within one pool.
#ifndef WEIR_ALLOCATOR_LANE_H_
#define WEIR_ALLOCATOR_LANE_H_

#include <compare>
#include <cstdint>

#include "allocator/base/units.h"

namespace weir {

// A pool of one device (DeviceAllocator::MakePool), never used twice. Zero: the general heap, which is always there.
class PoolId {
 public:
  constexpr PoolId() = default;
  constexpr explicit PoolId(uint32_t value) : value_(value) {}
  constexpr uint32_t value() const { return value_; }
  constexpr bool IsGeneral() const { return value_ == 0; }
  friend constexpr auto operator<=>(PoolId, PoolId) = default;

 private:
  uint32_t value_ = 0;
};

// A bare stream is its lane in the general heap.
struct Lane {
  Stream stream;
  PoolId pool;

  constexpr Lane() = default;
  constexpr Lane(Stream of_stream, PoolId in_pool = {}) : stream(of_stream), pool(in_pool) {}  // NOLINT
  friend constexpr auto operator<=>(const Lane&, const Lane&) = default;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_LANE_H_
