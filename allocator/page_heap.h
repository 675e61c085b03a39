// Free address ranges of a device's reservation, in 2 MiB pages: which are free, and of these which still have their
// frames mapped (a freed extent keeps its frames so that the next block of its size costs no driver call).
//
// Pure bookkeeping, no driver call. Not synchronised: guarded by the device's mutex.
//  - A mapped free run belongs to one lane: that stream may reuse it at once (stream order) for blocks of its pool;
//    anybody else only after its `uses` have passed and its pages were unmapped (harvested).
//  - Neighbouring runs of the same kind (both unmapped, or both mapped and of one lane) are merged.
//  - Taking is best fit; the rest of a larger run stays free. A mapped run that is too short can be extended in place.
//  - What happens to mapped runs in a steady state takes constant time; unmapped ones, which cost driver calls anyway, are
//    in trees.
#ifndef WEIR_ALLOCATOR_PAGE_HEAP_H_
#define WEIR_ALLOCATOR_PAGE_HEAP_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "allocator/base/units.h"
#include "allocator/free_run.h"
#include "allocator/lane.h"
#include "allocator/stream_uses.h"

namespace weir {

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
    for (uint64_t page = 0; page < used_;) {
      const FreeRun* run = at_page_[page];
      if (run != nullptr && run->bins != nullptr) each(run->run, run->bins->lane().stream);
      page = run != nullptr ? run->run.end() : page + 1;
    }
  }

  PageCount mapped_free() const { return mapped_free_; }
  // Longest mapped free run of any lane.
  PageCount longest_mapped() const;
  // Runs do not overlap, neighbours are merged, the indexes agree with the map and the counters with both.
  bool IsValid() const;

 private:
  struct FreeMemory {
    void operator()(void* memory) const { std::free(memory); }
  };

  FreeRun* NewRun(PageRun pages, RunBins* bins);
  void Recycle(FreeRun* run);
  RunBins* BinsOf(const Lane& lane) const;
  RunBins* NewBins(const Lane& lane);
  // Into the indexes that say how long it is and where, and out of them. The order of freeing stays.
  void List(FreeRun* run);
  void Unlist(FreeRun* run);
  // The order of freeing: a mapped run behind `older` (null: as the oldest one), or out.
  void LinkBehind(FreeRun* older, FreeRun* run);
  void Unlink(FreeRun* run);
  // Joined with the neighbours of its kind; as freed last if it is mapped.
  void Put(FreeRun* run);
  void Absorb(FreeRun* run, FreeRun* neighbour);
  // Takes `part` out of the free run `whole`; what is left of it keeps its place in the order of freeing.
  StreamUses Cut(FreeRun* whole, PageRun part);

  const uint64_t size_;
  uint64_t used_ = 0;  // no mapped run begins at or behind this page
  // The free run that begins or ends with a page; null for other pages. calloc'ed: pages never used cost no memory.
  std::unique_ptr<FreeRun*[], FreeMemory> at_page_;
  absl::btree_set<std::pair<uint64_t, uint64_t>> unmapped_;  // (pages, first page)
  absl::btree_map<uint64_t, FreeRun*> unmapped_by_address_;
  std::vector<std::unique_ptr<RunBins>> mapped_;  // one per lane; few
  FreeRun* oldest_ = nullptr;
  FreeRun* newest_ = nullptr;
  PageCount mapped_free_;
  std::vector<std::unique_ptr<FreeRun>> objects_;
  std::vector<FreeRun*> unused_;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_PAGE_HEAP_H_
