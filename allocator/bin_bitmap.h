// Which of 4096 bins hold anything: a two-level bitmap, every question in constant time. Not synchronised.
#ifndef WEIR_ALLOCATOR_BIN_BITMAP_H_
#define WEIR_ALLOCATOR_BIN_BITMAP_H_

#include <array>
#include <bit>
#include <cstdint>

namespace weir {

class BinBitmap {
 public:
  static constexpr uint64_t kBins = 4096;
  static constexpr uint64_t kNone = kBins;  // no such bin

  void Set(uint64_t bin) {
    words_[bin / 64] |= uint64_t{1} << (bin % 64);
    summary_ |= uint64_t{1} << (bin / 64);
  }
  void Clear(uint64_t bin) {
    words_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
    if (words_[bin / 64] == 0) summary_ &= ~(uint64_t{1} << (bin / 64));
  }
  // The first one at or above `bin` (below kBins) that is set, or kNone.
  uint64_t FirstFrom(uint64_t bin) const {
    const uint64_t word = words_[bin / 64] >> (bin % 64);
    if (word != 0) return bin + static_cast<uint64_t>(std::countr_zero(word));
    const uint64_t above = bin / 64 + 1;
    const uint64_t summary = above < 64 ? summary_ >> above : 0;
    if (summary == 0) return kNone;
    const uint64_t index = above + static_cast<uint64_t>(std::countr_zero(summary));
    return index * 64 + static_cast<uint64_t>(std::countr_zero(words_[index]));
  }
  // The last one below `bin` (at most kBins) that is set, or kNone.
  uint64_t LastBelow(uint64_t bin) const {
    const uint64_t index = bin / 64;
    const uint64_t below = bin % 64 == 0 ? 0 : words_[index] << (64 - bin % 64);
    if (below != 0) return bin - 1 - static_cast<uint64_t>(std::countl_zero(below));
    const uint64_t summary = index == 0 ? 0 : summary_ << (64 - index);
    if (summary == 0) return kNone;
    const uint64_t word = index - 1 - static_cast<uint64_t>(std::countl_zero(summary));
    return word * 64 + 63 - static_cast<uint64_t>(std::countl_zero(words_[word]));
  }

 private:
  uint64_t summary_ = 0;  // bit i: words_[i] is not zero
  std::array<uint64_t, kBins / 64> words_{};
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BIN_BITMAP_H_
