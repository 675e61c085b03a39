// The unit of residency: one address range, mapped and unmapped as a whole, that holds one large block or several
// medium or small ones. Read this file first: the state words of the whole project are defined here and only here.
//
// What each state means for the bytes, in every tier:
//   kResident  in VRAM, mapped; the tier holds nothing.
//   kDraining  still mapped in VRAM and right there; a copy to the tier is on its way. Nobody may write it (writers
//              wait until the eviction has ended).
//   kInRam     only in the RAM tier; the address range is kept, unmapped, and every access through torch throws.
//   kFilling   mapped in VRAM; the copy back is queued on one stream (`fill`). Work on that stream sees the bytes; any
//              other stream has to wait for the event. The RAM slots are released when the event has passed.
//   kFree      no block is left. The object only waits for the pins of an op in flight to end.
// Legal moves: kResident -> kDraining -> kInRam -> kFilling -> kResident; kDraining -> kResident when the copy failed;
// kResident, kInRam, kFilling -> kFree. Each is one function of DeviceAllocator or Pager, followed by IsValid() in
// debug builds.
//
// All fields but the constant ones are guarded by the device's mutex (LockRank::kDeviceAllocator).
#ifndef WEIR_ALLOCATOR_EXTENT_H_
#define WEIR_ALLOCATOR_EXTENT_H_

#include <cstdint>
#include <vector>

#include "allocator/base/safeguards.h"
#include "allocator/base/units.h"
#include "allocator/cuda/driver.h"
#include "allocator/lane.h"
#include "allocator/page_heap.h"
#include "allocator/stream_uses.h"

namespace weir {

enum class Residency : uint8_t { kResident, kDraining, kInRam, kFilling, kFree };
const char* ResidencyName(Residency state);

enum class ExtentKind : uint8_t {
  kSlab,    // blocks under 1 MiB; always resident: its bytes are the floor
  kMedium,  // blocks up to Layout::medium_limit, packed by stream and time of allocation
  kLarge,   // exactly one block
};

struct Extent;
class FitBins;

// What torch asked for. Blocks of an extent form a list in address order, free ones included.
struct Block {
  DeviceAddr addr;
  Bytes size;           // rounded to the heap's granule
  Bytes requested;      // zero: free
  uint64_t number = 0;  // of its allocation, from 1: with the address it names a block for ever (R8)
  Extent* extent = nullptr;
  Block* before = nullptr;
  Block* after = nullptr;
  Block* bin_before = nullptr;  // free blocks only: neighbours in their bin
  Block* bin_after = nullptr;
  void* storage = nullptr;   // weakly held StorageImpl, or null while never seen as one
  bool evidence = false;     // was an input of a top-level op: may leave (R1)
  StreamUses other_streams;  // record_stream: what the free has to wait for
  bool IsFree() const { return requested.IsZero(); }
};

// A copy back that is queued; see kFilling.
struct Fill {
  Stream stream;
  Event event;
};

// A page of the RAM tier; meaning known to the tier only.
struct RamSlot {
  void* memory = nullptr;
};

// Neighbours in an ExtentList.
struct ExtentLinks {
  Extent* before = nullptr;
  Extent* after = nullptr;
};

// Where LeavingOrder has an extent.
enum class InLeavingOrder : uint8_t { kNo, kByTouch, kRestored };

struct Extent {
  // Constant after construction.
  ExtentKind kind = ExtentKind::kLarge;
  PageRun pages;
  DeviceAddr base;      // of its first page
  Stream stream;        // of its blocks' allocation
  uint64_t number = 0;  // order of creation

  PoolId pool;  // to which its bytes return; the general heap once that pool has ended
  Residency state = Residency::kResident;
  uint32_t pins = 0;             // ops in flight that touched or allocated it
  bool pinned_for_good = false;  // a pointer escaped
  bool used_anywhere = false;    // since it was copied last, on streams that `uses` may not name
  uint32_t live_blocks = 0;
  uint32_t without_evidence = 0;  // live blocks that may not leave
  InLeavingOrder in_leaving_order = InLeavingOrder::kNo;
  uint64_t last_touch =
      0;  // tick of the device's touch counter; changes only through DeviceAllocator::TouchLocked
  ExtentLinks among_all, by_touch;
  StreamUses uses;
  Fill fill;                   // kFilling
  std::vector<RamSlot> slots;  // kInRam, kFilling, kDraining: one per page
  Block* first = nullptr;
  FitBins* bins = nullptr;     // of its holes: those of its kind and lane; null for kLarge
  int granule_shift = 0;       // of `starts`
  std::vector<Block*> starts;  // granule index -> block that starts there; empty for kLarge

  Bytes bytes() const { return pages.count.bytes(); }
  Lane lane() const { return Lane(stream, pool); }
  bool HasFrames() const {
    return state == Residency::kResident || state == Residency::kDraining || state == Residency::kFilling;
  }
  // Belongs into LeavingOrder as soon as it may leave.
  bool MayBeListed() const {
    return (state == Residency::kResident || state == Residency::kFilling) && kind != ExtentKind::kSlab;
  }
  // May leave now: resident or filled, nobody's pin, every block proven to be a storage.
  bool MayLeave() const {
    return MayBeListed() && pins == 0 && !pinned_for_good && live_blocks > 0 &&
           (without_evidence == 0 || Without(Safeguard::kEvidence));
  }
  // Slots only in the states that have them, blocks tile the range, counters match the blocks.
  bool IsValid() const;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_EXTENT_H_
