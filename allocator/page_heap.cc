#include "allocator/page_heap.h"

#include <algorithm>

#include "allocator/base/check.h"

namespace weir {

PageHeap::PageHeap(PageCount size) { PutUnmapped(PageRun{0, size}); }

bool PageHeap::Mergeable(const FreeRun& a, const FreeRun& b) {
  return a.mapped == b.mapped && (!a.mapped || a.lane == b.lane);
}

PageHeap::FreeRun PageHeap::Remove(Runs::iterator at) {
  FreeRun run = std::move(at->second);
  IndexOf(run).erase({run.count.count(), at->first});
  if (run.mapped) {
    by_age_.erase({run.freed, at->first});
    mapped_free_ -= run.count;
  }
  runs_.erase(at);
  return run;
}

void PageHeap::Insert(uint64_t first, FreeRun run) {
  auto next = runs_.lower_bound(first);
  WEIR_DCHECK(next == runs_.end() || next->first >= first + run.count.count());
  if (next != runs_.end() && next->first == first + run.count.count() && Mergeable(run, next->second)) {
    FreeRun right = Remove(next);
    run.count += right.count;
    run.uses.Add(right.uses);
    run.freed = std::max(run.freed, right.freed);
    next = runs_.lower_bound(first);
  }
  if (next != runs_.begin()) {
    auto before = std::prev(next);
    WEIR_DCHECK(before->first + before->second.count.count() <= first);
    if (before->first + before->second.count.count() == first && Mergeable(before->second, run)) {
      first = before->first;
      FreeRun left = Remove(before);
      run.count += left.count;
      run.uses.Add(left.uses);
      run.freed = std::max(run.freed, left.freed);
    }
  }
  IndexOf(run).insert({run.count.count(), first});
  if (run.mapped) {
    by_age_.insert({run.freed, first});
    mapped_free_ += run.count;
  }
  runs_.emplace(first, std::move(run));
}

PageHeap::FreeRun PageHeap::Cut(uint64_t first, PageCount count) {
  auto at = std::prev(runs_.upper_bound(first));
  const uint64_t begin = at->first;
  FreeRun whole = Remove(at);
  const uint64_t end = begin + whole.count.count();
  WEIR_DCHECK(begin <= first && first + count.count() <= end);
  FreeRun part = whole;
  if (begin < first) {
    part.count = PageCount(first - begin);
    Insert(begin, part);
  }
  if (first + count.count() < end) {
    part.count = PageCount(end - first - count.count());
    Insert(first + count.count(), part);
  }
  whole.count = count;
  return whole;
}

std::optional<PageHeap::MappedRun> PageHeap::TakeMapped(PageCount count, const Lane& lane) {
  auto index = mapped_.find(lane);
  if (index == mapped_.end()) return std::nullopt;
  auto fit = index->second.lower_bound({count.count(), 0});
  if (fit == index->second.end()) return std::nullopt;
  PageRun run{fit->second, count};
  return MappedRun{run, lane, Cut(run.first, count).uses};
}

std::optional<PageRun> PageHeap::TakeUnmapped(PageCount count) {
  auto fit = unmapped_.lower_bound({count.count(), 0});
  if (fit == unmapped_.end()) return std::nullopt;
  uint64_t first = fit->second;
  if (fit->first > 4 * count.count()) {
    first = std::find_if(runs_.begin(), runs_.end(), [&](const auto& entry) {
              return !entry.second.mapped && entry.second.count >= count;
            })->first;
  }
  Cut(first, count);
  return PageRun{first, count};
}

std::optional<PageHeap::Extension> PageHeap::TakeExtendable(PageCount count, const Lane& lane) {
  auto index = mapped_.find(lane);
  if (index == mapped_.end()) return std::nullopt;
  for (auto run = index->second.rbegin(); run != index->second.rend(); ++run) {
    const auto [length, first] = *run;
    if (length >= count.count()) continue;
    auto behind = runs_.find(first + length);
    if (behind == runs_.end() || behind->second.mapped || behind->second.count < count - PageCount(length))
      continue;
    PageRun missing{first + length, count - PageCount(length)};
    FreeRun mapped = Cut(first, PageCount(length));
    Cut(missing.first, missing.count);
    return Extension{MappedRun{PageRun{first, PageCount(length)}, lane, std::move(mapped.uses)}, missing};
  }
  return std::nullopt;
}

std::vector<PageHeap::MappedRun> PageHeap::TakeForHarvest(PageCount count) {
  std::vector<MappedRun> taken;
  PageCount sum;
  while (sum < count && !by_age_.empty()) {
    auto at = runs_.find(by_age_.begin()->second);
    uint64_t first = at->first;
    FreeRun run = Remove(at);
    PageCount wanted = std::min(run.count, count - sum);
    if (run.count > wanted) {  // the end is taken: the front keeps its address order for best fit
      FreeRun rest = run;
      rest.count = run.count - wanted;
      PageCount kept = rest.count;
      Insert(first, std::move(rest));
      first += kept.count();
    }
    sum += wanted;
    taken.push_back(MappedRun{PageRun{first, wanted}, run.lane, std::move(run.uses)});
  }
  return taken;
}

std::vector<PageHeap::MappedRun> PageHeap::TakePool(PoolId pool) {
  std::vector<MappedRun> taken;
  for (auto index = mapped_.begin(); index != mapped_.end();) {
    const Lane lane = index->first;
    if (lane.pool != pool) {
      ++index;
      continue;
    }
    while (!index->second.empty()) {
      const uint64_t first = index->second.begin()->second;
      FreeRun run = Remove(runs_.find(first));
      taken.push_back(MappedRun{PageRun{first, run.count}, lane, std::move(run.uses)});
    }
    index = mapped_.erase(index);
  }
  return taken;
}

void PageHeap::PutMapped(MappedRun run) {
  FreeRun free_run;
  free_run.count = run.run.count;
  free_run.mapped = true;
  free_run.lane = run.lane;
  free_run.uses = std::move(run.uses);
  free_run.freed = ++clock_;
  Insert(run.run.first, std::move(free_run));
}

void PageHeap::PutUnmapped(PageRun run) {
  FreeRun free_run;
  free_run.count = run.count;
  Insert(run.first, std::move(free_run));
}

PageCount PageHeap::longest_mapped() const {
  uint64_t longest = 0;
  for (const auto& [lane, index] : mapped_) {
    if (!index.empty()) longest = std::max(longest, index.rbegin()->first);
  }
  return PageCount(longest);
}

bool PageHeap::IsValid() const {
  size_t unmapped = 0, mapped = 0;
  PageCount mapped_pages;
  const FreeRun* before = nullptr;
  uint64_t end = 0;
  for (const auto& [first, run] : runs_) {
    if (run.count.count() == 0 || (before != nullptr && first < end)) return false;
    if (before != nullptr && first == end && Mergeable(*before, run)) return false;
    if (run.mapped) {
      auto index = mapped_.find(run.lane);
      if (index == mapped_.end() || !index->second.contains({run.count.count(), first})) return false;
      if (!by_age_.contains({run.freed, first})) return false;
      ++mapped;
      mapped_pages += run.count;
    } else {
      if (!unmapped_.contains({run.count.count(), first})) return false;
      ++unmapped;
    }
    before = &run;
    end = first + run.count.count();
  }
  size_t indexed = 0;
  for (const auto& [lane, index] : mapped_) indexed += index.size();
  return unmapped == unmapped_.size() && mapped == indexed && mapped == by_age_.size() &&
         mapped_pages == mapped_free_;
}

}  // namespace weir
