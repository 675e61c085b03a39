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
#include "allocator/extent.h"

namespace weir {

class FitBins {
 public:
  static constexpr uint64_t kBins = 4096;

  // Sizes are multiples of `granule`; all of granule * (kBins - 1) and more share the last bin, so requests must be
  // smaller than that.
  explicit FitBins(Bytes granule) : granule_(granule) {}

  void Insert(Block* block) {
    uint64_t bin = BinOf(block->size);
    block->bin_before = nullptr;
    block->bin_after = heads_[bin];
    if (heads_[bin] != nullptr) heads_[bin]->bin_before = block;
    heads_[bin] = block;
    words_[bin / 64] |= uint64_t{1} << (bin % 64);
    summary_ |= uint64_t{1} << (bin / 64);
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
    if (heads_[bin] == nullptr) {
      words_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
      if (words_[bin / 64] == 0) summary_ &= ~(uint64_t{1} << (bin / 64));
    }
  }

  // The smallest free block of at least `size` (a multiple of the granule), or null. It stays in its bin.
  Block* SmallestFit(Bytes size) const {
    uint64_t bin = BinOf(size);
    uint64_t word = words_[bin / 64] >> (bin % 64);
    if (word != 0) return heads_[bin + static_cast<uint64_t>(std::countr_zero(word))];
    uint64_t above = bin / 64 + 1;
    if (above >= 64) return nullptr;
    uint64_t summary = summary_ >> above;
    if (summary == 0) return nullptr;
    uint64_t index = above + static_cast<uint64_t>(std::countr_zero(summary));
    return heads_[index * 64 + static_cast<uint64_t>(std::countr_zero(words_[index]))];
  }

  // Size of the largest free block, zero if there is none.
  Bytes LargestSize() const {
    if (summary_ == 0) return Bytes();
    uint64_t index = 63 - static_cast<uint64_t>(std::countl_zero(summary_));
    return granule_ * (index * 64 + 63 - static_cast<uint64_t>(std::countl_zero(words_[index])));
  }

 private:
  uint64_t BinOf(Bytes size) const {
    uint64_t bin = size / granule_;
    WEIR_DCHECK(bin > 0);
    return bin < kBins ? bin : kBins - 1;
  }

  const Bytes granule_;
  uint64_t summary_ = 0;  // bit i: words_[i] is not zero
  std::array<uint64_t, kBins / 64> words_{};
  std::array<Block*, kBins> heads_{};
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_FIT_BINS_H_
