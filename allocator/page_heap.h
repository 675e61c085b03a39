// Free address ranges of a device's reservation, in 2 MiB pages: which are free, and of these which still have their
// frames mapped (a freed extent keeps its frames so that the next block of its size costs no driver call).
//
// Pure bookkeeping, no driver call. Not synchronised: guarded by the device's mutex.
//  - A mapped free run belongs to one stream: that stream may reuse it at once (stream order); anybody else only after
//    its `uses` have passed and its pages were unmapped (harvested).
//  - Neighbouring runs of the same kind (both unmapped, or both mapped and of one stream) are merged.
//  - Taking is best fit; the rest of a larger run stays free.
//  - The upper half of the addresses is kept apart for large runs (kApartFrom pages and more). Small ones never cut the
//    place of a tensor that is as large as a layer, so it is whole when the next step asks for it again. Large runs lie
//    far from each other, so that a free one can be extended in place.
#ifndef WEIR_ALLOCATOR_PAGE_HEAP_H_
#define WEIR_ALLOCATOR_PAGE_HEAP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "allocator/base/units.h"
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
    Stream stream;
    StreamUses uses;
  };

  static constexpr PageCount kApartFrom{128};

  // Pages [0, size) are free and unmapped. A heap of fewer than 16 large runs has no part of its own for them.
  explicit PageHeap(PageCount size);

  // The smallest mapped run of `stream` with at least `count` pages, cut to it; `uses` of the run go with it.
  std::optional<MappedRun> TakeMapped(PageCount count, Stream stream);
  // Unmapped pages: small runs from the smallest hole that fits (if it is more than four times as long, from the lowest
  // addresses), large ones from the middle of the longest. nullopt: out of addresses.
  std::optional<PageRun> TakeUnmapped(PageCount count);
  // A mapped run of `stream` too short for `count`, with the unmapped pages behind it that are missing. Of several the
  // longest. Both parts are taken; the caller maps the second one.
  struct Extension {
    MappedRun mapped;
    PageRun missing;
  };
  std::optional<Extension> TakeExtendable(PageCount count, Stream stream);
  // Mapped runs, least recently freed first, that add up to at least `count` pages (the last one is cut), or all.
  std::vector<MappedRun> TakeForHarvest(PageCount count);

  void PutMapped(MappedRun run);
  void PutUnmapped(PageRun run);

  PageCount mapped_free() const { return mapped_free_; }
  // Longest mapped free run of any stream.
  PageCount longest_mapped() const;
  // Runs do not overlap, neighbours are merged, the indexes agree with the map and the counters with both.
  bool IsValid() const;

 private:
  struct FreeRun {
    PageCount count;
    bool mapped = false;
    Stream stream;       // of a mapped run
    StreamUses uses;     // of a mapped run
    uint64_t freed = 0;  // order of freeing, for harvest
  };
  using Runs = std::map<uint64_t, FreeRun>;                // by first page
  using BySize = std::set<std::pair<uint64_t, uint64_t>>;  // (pages, first page)

  bool IsApart(uint64_t first) const { return first >= apart_; }
  bool WantsApart(PageCount count) const { return count >= kApartFrom && apart_ < end_; }
  BySize& IndexOf(uint64_t first, const FreeRun& run) {
    return run.mapped ? mapped_[{run.stream, IsApart(first)}] : unmapped_[IsApart(first)];
  }
  void Insert(uint64_t first, FreeRun run);
  FreeRun Remove(Runs::iterator at);
  // `a` ends where `b`, at page `second`, begins.
  bool Mergeable(const FreeRun& a, uint64_t second, const FreeRun& b) const;
  std::optional<PageRun> TakeUnmappedAnywhere(PageCount count);
  // Takes [first, first + count) out of the free run that contains it.
  FreeRun Cut(uint64_t first, PageCount count);

  const uint64_t end_;
  const uint64_t apart_;  // first page of the part for large runs
  Runs runs_;
  BySize unmapped_[2];                                // below apart_, and from there on
  std::map<std::pair<Stream, bool>, BySize> mapped_;  // the same
  std::set<std::pair<uint64_t, uint64_t>> by_age_;    // (freed, first page), mapped runs only
  PageCount mapped_free_;
  uint64_t clock_ = 0;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_PAGE_HEAP_H_
