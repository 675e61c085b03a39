// Cuts extents into blocks. Slabs and medium extents hold many blocks each; neighbours that are free are merged.
// No CUDA call, no residency decision: the caller says which extents can be cut (resident ones) by AddHoles and
// RemoveHoles. Not synchronised: guarded by the device's mutex.
//
// Only blocks of one lane share an extent, so reuse is always in stream order and within the pool. Best fit (FitBins).
#ifndef WEIR_ALLOCATOR_BLOCK_HEAP_H_
#define WEIR_ALLOCATOR_BLOCK_HEAP_H_

#include <memory>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/extent.h"
#include "allocator/fit_bins.h"
#include "allocator/lane.h"

namespace weir {

// The sizes that decide where a block goes; granules are powers of two. Constant after construction.
struct Layout {
  Bytes slab_granule{512};     // also the alignment of every block, as in torch's own allocator
  Bytes small_limit = MiB(1);  // smaller blocks go to slabs
  PageCount slab_pages{1};
  Bytes medium_granule = KiB(4);
  Bytes medium_limit = MiB(4);  // smaller blocks share medium extents; larger ones get their own
  PageCount medium_pages{4};

  // For a device on which Weir may hold `cap` bytes: extents grow with the cap, so that the unit of eviction stays a
  // small share of it while large caps get fewer, fuller extents.
  static Layout For(Bytes cap);
  ExtentKind KindOf(Bytes requested) const;
  Bytes Granule(ExtentKind kind) const { return kind == ExtentKind::kSlab ? slab_granule : medium_granule; }
  PageCount SharedPages(ExtentKind kind) const {
    return kind == ExtentKind::kSlab ? slab_pages : medium_pages;
  }
};

// Block objects, recycled.
class BlockStore {
 public:
  Block* New();
  void Delete(Block* block);

 private:
  std::vector<std::unique_ptr<Block[]>> chunks_;
  std::vector<Block*> free_;
};

class BlockHeap {
 public:
  explicit BlockHeap(Layout layout) : layout_(layout) {}

  // A block of `requested` bytes from the holes of `kind` on `lane`, or null when no hole fits.
  Block* Allocate(ExtentKind kind, Bytes requested, const Lane& lane);
  // Makes `extent` (no blocks yet) one hole of a shared kind, or one live block (kLarge; `requested` is its size).
  void Adopt(Extent* extent);
  Block* AdoptLarge(Extent* extent, Bytes requested);
  // Merges with free neighbours. When the extent has no live block left its only hole is removed from the bins.
  void Free(Block* block);
  // Drops the last hole of an extent without live blocks: afterwards extent->first is null.
  void Abandon(Extent* extent);

  // An extent leaves VRAM, or comes back: its holes cannot, or can again, be handed out.
  void RemoveHoles(Extent* extent);
  void AddHoles(Extent* extent);
  // The extent belongs to `pool` from now on, with all its blocks.
  void MoveToPool(Extent* extent, PoolId pool);
  // Forgets the bins of a pool to which no extent belongs any more.
  void DropPool(PoolId pool);

  // The live block that contains `addr`, or null.
  Block* Find(const Extent* extent, DeviceAddr addr) const;
  Bytes LargestHole(ExtentKind kind, const Lane& lane) const;

 private:
  static constexpr size_t kSpareStarts = 64;  // of each kind, 64 KiB each at most
  struct Bins {
    Lane lane;
    std::unique_ptr<FitBins> slab, medium;
  };
  FitBins& BinsOf(ExtentKind kind, const Lane& lane);
  bool HolesListed(const Extent* extent) const {
    return extent->state == Residency::kResident || extent->state == Residency::kFilling;
  }
  void SplitAfter(Block* block, Bytes size);
  void MergeWithNext(Block* block);
  static Block*& StartOf(Block* block);

  std::vector<std::vector<Block*>>& SpareStarts(ExtentKind kind) {
    return spare_starts_[kind == ExtentKind::kSlab ? 0 : 1];
  }

  const Layout layout_;
  BlockStore blocks_;
  std::vector<Bins> bins_;  // one per lane that ever allocated; few
  // Extent::starts of extents that have ended, all null, for the next ones.
  std::vector<std::vector<Block*>> spare_starts_[2];
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BLOCK_HEAP_H_
