// Free blocks of one kind and stream, by size: one bin per multiple of the granule, found through a two-level bitmap in
// constant time. Within a bin the most recently freed block comes first (its bytes are the warmest).
// Not synchronised: guarded by the device's mutex. Blocks are linked through Block::bin_before / bin_after.
#ifndef WEIR_ALLOCATOR_FIT_BINS_H_
#define WEIR_ALLOCATOR_FIT_BINS_H_

#include <array>
#include <bit>
#include <cstdint>

#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/bin_bitmap.h"
#include "allocator/extent.h"

namespace weir {

class FitBins {
 public:
  static constexpr uint64_t kBins = BinBitmap::kBins;

  // Sizes are multiples of `granule`, a power of two; all of granule * (kBins - 1) and more share the last bin, so requests must be
  // smaller than that.
  explicit FitBins(Bytes granule) : shift_(std::countr_zero(granule.count())) {}

  void Insert(Block* block) {
    uint64_t bin = BinOf(block->size);
    block->bin_before = nullptr;
    block->bin_after = heads_[bin];
    if (heads_[bin] != nullptr) heads_[bin]->bin_before = block;
    heads_[bin] = block;
    bitmap_.Set(bin);
  }

  void Remove(Block* block) {
    uint64_t bin = BinOf(block->size);
    if (block->bin_before != nullptr) {
      block->bin_before->bin_after = block->bin_after;
    } else {
      WEIR_DCHECK(heads_[bin] == block);
      heads_[bin] = block->bin_after;
    }
    if (block->bin_after != nullptr) block->bin_after->bin_before = block->bin_before;
    block->bin_before = block->bin_after = nullptr;
    if (heads_[bin] == nullptr) bitmap_.Clear(bin);
  }

  // The smallest free block of at least `size` (a multiple of the granule), or null. It stays in its bin.
  Block* SmallestFit(Bytes size) const {
    const uint64_t bin = bitmap_.FirstFrom(BinOf(size));
    return bin == BinBitmap::kNone ? nullptr : heads_[bin];
  }

  // Size of the largest free block, zero if there is none.
  Bytes LargestSize() const {
    const uint64_t bin = bitmap_.LastBelow(kBins);
    return bin == BinBitmap::kNone ? Bytes() : Bytes(bin << shift_);
  }

 private:
  uint64_t BinOf(Bytes size) const {
    const uint64_t bin = size.count() >> shift_;
    WEIR_DCHECK(bin > 0);
    return bin < kBins ? bin : kBins - 1;
  }

  const int shift_;  // the granule is 1 << shift_ bytes
  BinBitmap bitmap_;
  std::array<Block*, kBins> heads_{};
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_FIT_BINS_H_
