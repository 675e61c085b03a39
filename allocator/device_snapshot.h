// What a device holds at one instant: its segments in address order, and the blocks that tile each of them.
//
// A segment is an extent, a free run that still has its frames, or the frames that are mapped nowhere. The bytes of all
// but the evicted ones add up to the frames held. A plain copy: it stays true to its instant, and needs no lock to read.
#ifndef WEIR_ALLOCATOR_DEVICE_SNAPSHOT_H_
#define WEIR_ALLOCATOR_DEVICE_SNAPSHOT_H_

#include <cstdint>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/extent.h"

namespace weir {

enum class SegmentState : uint8_t {
  kResident,  // an extent with frames, also while it is on its way out or back
  kCached,    // a free run: no block, frames mapped
  kEvicted,   // an extent whose bytes are in a tier: addresses without frames
  kUnmapped,  // frames without addresses; shown at the end of the reservation, where nothing ever is
};

enum class BlockState : uint8_t {
  kFree,
  kAllocated,
  kAwaitingFree
};  // the last: freed, a recorded stream is behind

struct BlockView {
  DeviceAddr addr;
  Bytes size;
  Bytes requested;
  uint64_t number = 0;  // Block::number; zero: free
  BlockState state = BlockState::kFree;
};

struct SegmentView {
  DeviceAddr addr;
  Bytes size;
  Stream stream;
  SegmentState state = SegmentState::kResident;
  ExtentKind kind = ExtentKind::kLarge;  // of an extent
  size_t first_block = 0;                // its blocks: [first_block, first_block + block_count)
  size_t block_count = 0;
};

struct DeviceSnapshot {
  std::vector<SegmentView> segments;
  std::vector<BlockView> blocks;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_DEVICE_SNAPSHOT_H_
