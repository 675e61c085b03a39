#include "allocator/page_heap.h"

#include <algorithm>

#include "allocator/base/check.h"

namespace weir {

PageHeap::PageHeap(PageCount size)
    : size_(size.count()),
      at_page_(static_cast<FreeRun**>(std::calloc(size.count(), sizeof(FreeRun*)))) {  // NOLINT
  WEIR_CHECK(at_page_ != nullptr);
  PutUnmapped(PageRun{0, size});
}

FreeRun* PageHeap::NewRun(PageRun pages, RunBins* bins) {
  if (unused_.empty()) {
    objects_.push_back(std::make_unique<FreeRun>());
    unused_.push_back(objects_.back().get());
  }
  FreeRun* run = unused_.back();
  unused_.pop_back();
  run->run = pages;
  run->bins = bins;
  return run;
}

void PageHeap::Recycle(FreeRun* run) {
  run->uses.Clear();
  unused_.push_back(run);
}

RunBins* PageHeap::BinsOf(const Lane& lane) const {
  for (const std::unique_ptr<RunBins>& bins : mapped_) {
    if (bins->lane() == lane) return bins.get();
  }
  return nullptr;
}

RunBins* PageHeap::NewBins(const Lane& lane) {
  mapped_.push_back(std::make_unique<RunBins>(lane));
  return mapped_.back().get();
}

void PageHeap::List(FreeRun* run) {
  at_page_[run->run.first] = at_page_[run->run.end() - 1] = run;
  if (run->bins != nullptr) {
    run->bins->Insert(run);
    mapped_free_ += run->run.count;
    used_ = std::max(used_, run->run.end());
  } else {
    unmapped_.insert({run->run.count.count(), run->run.first});
    unmapped_by_address_.emplace(run->run.first, run);
  }
}

void PageHeap::Unlist(FreeRun* run) {
  at_page_[run->run.first] = at_page_[run->run.end() - 1] = nullptr;
  if (run->bins != nullptr) {
    run->bins->Remove(run);
    mapped_free_ -= run->run.count;
  } else {
    unmapped_.erase({run->run.count.count(), run->run.first});
    unmapped_by_address_.erase(run->run.first);
  }
}

void PageHeap::LinkBehind(FreeRun* older, FreeRun* run) {
  run->older = older;
  run->newer = older != nullptr ? older->newer : oldest_;
  (run->older != nullptr ? run->older->newer : oldest_) = run;
  (run->newer != nullptr ? run->newer->older : newest_) = run;
}

void PageHeap::Unlink(FreeRun* run) {
  (run->older != nullptr ? run->older->newer : oldest_) = run->newer;
  (run->newer != nullptr ? run->newer->older : newest_) = run->older;
}

void PageHeap::Absorb(FreeRun* run, FreeRun* neighbour) {
  Unlist(neighbour);
  if (neighbour->bins != nullptr) Unlink(neighbour);
  run->run.first = std::min(run->run.first, neighbour->run.first);
  run->run.count += neighbour->run.count;
  run->uses.Add(neighbour->uses);
  Recycle(neighbour);
}

void PageHeap::Put(FreeRun* run) {
  // Whatever lies at the page before ends there, and at the page behind begins: runs do not overlap.
  FreeRun* before = run->run.first > 0 ? at_page_[run->run.first - 1] : nullptr;
  FreeRun* behind = run->run.end() < size_ ? at_page_[run->run.end()] : nullptr;
  if (before != nullptr && before->bins == run->bins) Absorb(run, before);
  if (behind != nullptr && behind->bins == run->bins) Absorb(run, behind);
  List(run);
  if (run->bins != nullptr) LinkBehind(newest_, run);
}

StreamUses PageHeap::Cut(FreeRun* whole, PageRun part) {
  WEIR_DCHECK(whole->run.first <= part.first && part.end() <= whole->run.end());
  Unlist(whole);
  const PageRun front{whole->run.first, PageCount(part.first - whole->run.first)};
  const PageRun back{part.end(), PageCount(whole->run.end() - part.end())};
  StreamUses uses = whole->uses;
  const bool keeps_front = front.count.count() > 0, keeps_back = back.count.count() > 0;
  if (keeps_front && keeps_back) {
    FreeRun* second = NewRun(back, whole->bins);
    second->uses = uses;
    List(second);
    if (whole->bins != nullptr) LinkBehind(whole, second);
  }
  if (keeps_front || keeps_back) {
    whole->run = keeps_front ? front : back;
    List(whole);
  } else {
    if (whole->bins != nullptr) Unlink(whole);
    Recycle(whole);
  }
  return uses;
}

std::optional<PageHeap::MappedRun> PageHeap::TakeMapped(PageCount count, const Lane& lane) {
  const RunBins* bins = BinsOf(lane);
  FreeRun* fit = bins != nullptr ? bins->ShortestFit(count) : nullptr;
  if (fit == nullptr) return std::nullopt;
  const PageRun run{fit->run.first, count};
  return MappedRun{run, lane, Cut(fit, run)};
}

std::optional<PageRun> PageHeap::TakeUnmapped(PageCount count) {
  auto fit = unmapped_.lower_bound({count.count(), 0});
  if (fit == unmapped_.end()) return std::nullopt;
  FreeRun* whole = at_page_[fit->second];
  if (fit->first > 4 * count.count()) {
    whole = std::find_if(unmapped_by_address_.begin(), unmapped_by_address_.end(), [&](const auto& entry) {
              return entry.second->run.count >= count;
            })->second;
  }
  const PageRun run{whole->run.first, count};
  Cut(whole, run);
  return run;
}

std::optional<PageHeap::Extension> PageHeap::TakeExtendable(PageCount count, const Lane& lane) {
  const RunBins* bins = BinsOf(lane);
  if (bins == nullptr) return std::nullopt;
  const auto behind = [&](const FreeRun& run) {
    return run.run.end() < size_ ? at_page_[run.run.end()] : nullptr;
  };
  FreeRun* short_one = bins->LongestBelow(count, [&](const FreeRun& run) {
    const FreeRun* next = behind(run);
    return next != nullptr && next->bins == nullptr && next->run.count >= count - run.run.count;
  });
  if (short_one == nullptr) return std::nullopt;
  const PageRun mapped = short_one->run;
  const PageRun missing{mapped.end(), count - mapped.count};
  Cut(behind(*short_one), missing);
  return Extension{MappedRun{mapped, lane, Cut(short_one, mapped)}, missing};
}

std::vector<PageHeap::MappedRun> PageHeap::TakeForHarvest(PageCount count) {
  std::vector<MappedRun> taken;
  PageCount sum;
  while (sum < count && oldest_ != nullptr) {
    FreeRun* whole = oldest_;
    // The end of a longer one is taken: the front keeps its address order for best fit.
    PageRun part = whole->run;
    part.count = std::min(part.count, count - sum);
    part.first = whole->run.end() - part.count.count();
    sum += part.count;
    const Lane lane = whole->bins->lane();
    taken.push_back(MappedRun{part, lane, Cut(whole, part)});
  }
  return taken;
}

std::vector<PageHeap::MappedRun> PageHeap::TakePool(PoolId pool) {
  std::vector<MappedRun> taken;
  for (FreeRun* run = oldest_; run != nullptr;) {
    FreeRun* const newer = run->newer;
    if (const Lane lane = run->bins->lane(); lane.pool == pool) {
      const PageRun pages = run->run;
      taken.push_back(MappedRun{pages, lane, Cut(run, pages)});
    }
    run = newer;
  }
  std::erase_if(mapped_, [&](const auto& bins) { return bins->lane().pool == pool; });
  return taken;
}

void PageHeap::PutMapped(MappedRun run) {
  RunBins* bins = BinsOf(run.lane);
  FreeRun* free_run = NewRun(run.run, bins != nullptr ? bins : NewBins(run.lane));
  free_run->uses = std::move(run.uses);
  Put(free_run);
}

void PageHeap::PutUnmapped(PageRun run) { Put(NewRun(run, nullptr)); }

PageCount PageHeap::longest_mapped() const {
  PageCount longest;
  for (const FreeRun* run = oldest_; run != nullptr; run = run->newer)
    longest = std::max(longest, run->run.count);
  return longest;
}

bool PageHeap::IsValid() const {
  std::vector<const FreeRun*> runs;
  PageCount mapped_pages;
  for (const FreeRun* run = oldest_; run != nullptr; run = run->newer) {
    if (run->bins == nullptr || (run->newer != nullptr ? run->newer->older : newest_) != run) return false;
    if (run->run.end() > used_) return false;
    mapped_pages += run->run.count;
    runs.push_back(run);
  }
  size_t indexed = 0;
  for (const auto& bins : mapped_) indexed += bins->size();
  if (indexed != runs.size() || mapped_pages != mapped_free_) return false;
  if (unmapped_.size() != unmapped_by_address_.size()) return false;
  for (const auto& [first, run] : unmapped_by_address_) {
    if (run->bins != nullptr || run->run.first != first ||
        !unmapped_.contains({run->run.count.count(), first}))
      return false;
    runs.push_back(run);
  }
  std::sort(runs.begin(), runs.end(), [](auto* a, auto* b) { return a->run.first < b->run.first; });
  for (size_t i = 0; i < runs.size(); ++i) {
    const FreeRun* run = runs[i];
    const FreeRun* before = i == 0 ? nullptr : runs[i - 1];
    if (run->run.count.count() == 0 || (before != nullptr && run->run.first < before->run.end()))
      return false;
    if (before != nullptr && run->run.first == before->run.end() && run->bins == before->bins) return false;
    if (at_page_[run->run.first] != run || at_page_[run->run.end() - 1] != run) return false;
  }
  return true;
}

}  // namespace weir
