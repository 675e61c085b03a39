// Free pages that follow each other, and the mapped ones of a lane by length. Used by PageHeap alone; not synchronised.
#ifndef WEIR_ALLOCATOR_FREE_RUN_H_
#define WEIR_ALLOCATOR_FREE_RUN_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/bin_bitmap.h"
#include "allocator/lane.h"
#include "allocator/stream_uses.h"

namespace weir {

// Pages [first, first + count) of the reservation.
struct PageRun {
  uint64_t first = 0;
  PageCount count;
  uint64_t end() const { return first + count.count(); }
  friend bool operator==(PageRun, PageRun) = default;
};

class RunBins;

struct FreeRun {
  PageRun run;
  RunBins* bins = nullptr;  // of its lane; null: unmapped
  StreamUses uses;          // of a mapped run
  // Neighbours of a mapped run: in its bin, and in the order of freeing.
  FreeRun* bin_before = nullptr;
  FreeRun* bin_after = nullptr;
  FreeRun* older = nullptr;
  FreeRun* newer = nullptr;
};

// One bin per number of pages; all of kBins - 1 pages (8 GiB) and more share the last one.
class RunBins {
 public:
  explicit RunBins(Lane lane) : lane_(lane) {}

  const Lane& lane() const { return lane_; }
  size_t size() const { return size_; }

  void Insert(FreeRun* run) {
    const uint64_t bin = BinOf(run->run.count);
    // By address, as far as a few steps go: a long bin would make it slow.
    FreeRun* before = nullptr;
    FreeRun* after = heads_[bin];
    for (int step = 0; step < kSteps && after != nullptr && after->run.first < run->run.first; ++step) {
      before = after;
      after = after->bin_after;
    }
    run->bin_before = before;
    run->bin_after = after;
    (before != nullptr ? before->bin_after : heads_[bin]) = run;
    if (after != nullptr) after->bin_before = run;
    bitmap_.Set(bin);
    ++size_;
  }

  void Remove(FreeRun* run) {
    const uint64_t bin = BinOf(run->run.count);
    (run->bin_before != nullptr ? run->bin_before->bin_after : heads_[bin]) = run->bin_after;
    if (run->bin_after != nullptr) run->bin_after->bin_before = run->bin_before;
    if (heads_[bin] == nullptr) bitmap_.Clear(bin);
    --size_;
  }

  // The shortest run of at least `count` pages, or null.
  FreeRun* ShortestFit(PageCount count) const {
    const uint64_t bin = bitmap_.FirstFrom(BinOf(count));
    if (bin == BinBitmap::kNone) return nullptr;
    if (bin != kLastBin) return heads_[bin];
    FreeRun* best = nullptr;
    for (FreeRun* run = heads_[bin]; run != nullptr; run = run->bin_after) {
      if (run->run.count >= count && (best == nullptr || run->run.count < best->run.count)) best = run;
    }
    return best;
  }

  // The longest run of less than `count` pages for which `suits` holds, or null.
  template <typename Suits>
  FreeRun* LongestBelow(PageCount count, Suits suits) const {
    FreeRun* best = nullptr;
    for (uint64_t bin = bitmap_.LastBelow(BinOf(count) + 1); bin != BinBitmap::kNone && best == nullptr;
         bin = bitmap_.LastBelow(bin)) {
      for (FreeRun* run = heads_[bin]; run != nullptr; run = run->bin_after) {
        if (run->run.count < count && (best == nullptr || run->run.count > best->run.count) && suits(*run))
          best = run;
      }
    }
    return best;
  }

 private:
  static constexpr uint64_t kLastBin = BinBitmap::kBins - 1;
  static constexpr int kSteps = 8;

  static uint64_t BinOf(PageCount count) { return count.count() < kLastBin ? count.count() : kLastBin; }

  const Lane lane_;
  size_t size_ = 0;
  BinBitmap bitmap_;
  std::array<FreeRun*, BinBitmap::kBins> heads_{};
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_FREE_RUN_H_
