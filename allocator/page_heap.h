// Free address ranges of a device's reservation, in 2 MiB pages: which are free, and of these which still have their
// frames mapped (a freed extent keeps its frames so that the next block of its size costs no driver call).
//
// Pure bookkeeping, no driver call. Not synchronised: guarded by the device's mutex.
//  - A mapped free run belongs to one lane: that stream may reuse it at once (stream order) for blocks of its pool;
//    anybody else only after its `uses` have passed and its pages were unmapped (harvested).
//  - Neighbouring runs of the same kind (both unmapped, or both mapped and of one lane) are merged.
//  - Taking is best fit; the rest of a larger run stays free. A mapped run that is too short can be extended in place.
#ifndef WEIR_ALLOCATOR_PAGE_HEAP_H_
#define WEIR_ALLOCATOR_PAGE_HEAP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "allocator/base/units.h"
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

class PageHeap {
 public:
  // A mapped free run together with what has to pass before it may be unmapped.
  struct MappedRun {
    PageRun run;
    Lane lane;
    StreamUses uses;
  };

  // Pages [0, size) are free and unmapped.
  explicit PageHeap(PageCount size);

  // The smallest mapped run of `lane` with at least `count` pages, cut to it; `uses` of the run go with it.
  std::optional<MappedRun> TakeMapped(PageCount count, const Lane& lane);
  // Unmapped pages, from the smallest hole that fits (if it is more than four times as long, from the lowest addresses).
  // nullopt: out of addresses.
  std::optional<PageRun> TakeUnmapped(PageCount count);
  // A mapped run of `lane` too short for `count`, with the unmapped pages behind it that are missing. Of several the
  // longest. Both parts are taken; the caller maps the second one.
  struct Extension {
    MappedRun mapped;
    PageRun missing;
  };
  std::optional<Extension> TakeExtendable(PageCount count, const Lane& lane);
  // Mapped runs, least recently freed first, that add up to at least `count` pages (the last one is cut), or all.
  std::vector<MappedRun> TakeForHarvest(PageCount count);
  // All mapped runs of `pool`. Afterwards nothing here remembers it.
  std::vector<MappedRun> TakePool(PoolId pool);

  void PutMapped(MappedRun run);
  void PutUnmapped(PageRun run);

  // `each(PageRun, Stream)` for every mapped run, in address order.
  template <typename Each>
  void ForEachMapped(Each each) const {
    for (const auto& [first, run] : runs_) {
      if (run.mapped) each(PageRun{first, run.count}, run.lane.stream);
    }
  }

  PageCount mapped_free() const { return mapped_free_; }
  // Longest mapped free run of any lane.
  PageCount longest_mapped() const;
  // Runs do not overlap, neighbours are merged, the indexes agree with the map and the counters with both.
  bool IsValid() const;

 private:
  struct FreeRun {
    PageCount count;
    bool mapped = false;
    Lane lane;           // of a mapped run
    StreamUses uses;     // of a mapped run
    uint64_t freed = 0;  // order of freeing, for harvest
  };
  using Runs = absl::btree_map<uint64_t, FreeRun>;                // by first page
  using BySize = absl::btree_set<std::pair<uint64_t, uint64_t>>;  // (pages, first page)

  BySize& IndexOf(const FreeRun& run) { return run.mapped ? mapped_[run.lane] : unmapped_; }
  void Insert(uint64_t first, FreeRun run);
  FreeRun Remove(Runs::iterator at);
  // `a` ends where `b` begins.
  static bool Mergeable(const FreeRun& a, const FreeRun& b);
  // Takes [first, first + count) out of the free run that contains it.
  FreeRun Cut(uint64_t first, PageCount count);

  Runs runs_;
  BySize unmapped_;
  std::map<Lane, BySize> mapped_;
  absl::btree_set<std::pair<uint64_t, uint64_t>> by_age_;  // (freed, first page), mapped runs only
  PageCount mapped_free_;
  uint64_t clock_ = 0;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_PAGE_HEAP_H_
