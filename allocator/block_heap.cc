#include "allocator/block_heap.h"

#include <algorithm>
#include <bit>

#include "allocator/base/check.h"

namespace weir {

Layout Layout::For(Bytes cap) {
  Layout layout;
  if (cap >= GiB(1)) {
    layout.medium_limit = MiB(8);
    layout.medium_pages = PageCount(8);
  }
  if (cap >= GiB(4)) layout.medium_pages = PageCount(16);
  return layout;
}

ExtentKind Layout::KindOf(Bytes requested) const {
  if (requested < small_limit) return ExtentKind::kSlab;
  return requested < medium_limit ? ExtentKind::kMedium : ExtentKind::kLarge;
}

Block* BlockStore::New() {
  if (free_.empty()) {
    constexpr size_t kChunk = 256;
    chunks_.push_back(std::make_unique<Block[]>(kChunk));
    for (size_t i = kChunk; i-- > 0;) free_.push_back(&chunks_.back()[i]);
  }
  Block* block = free_.back();
  free_.pop_back();
  return block;
}

void BlockStore::Delete(Block* block) {
  *block = Block{};
  free_.push_back(block);
}

FitBins& BlockHeap::BinsOf(ExtentKind kind, const Lane& lane) {
  for (Bins& bins : bins_) {
    if (bins.lane == lane) return kind == ExtentKind::kSlab ? *bins.slab : *bins.medium;
  }
  bins_.push_back(Bins{lane, std::make_unique<FitBins>(layout_.slab_granule),
                       std::make_unique<FitBins>(layout_.medium_granule)});
  return kind == ExtentKind::kSlab ? *bins_.back().slab : *bins_.back().medium;
}

// Of a block in an extent of a shared kind.
Block*& BlockHeap::StartOf(Block* block) {
  Extent* extent = block->extent;
  return extent->starts[(block->addr - extent->base).count() >> extent->granule_shift];
}

void BlockHeap::Adopt(Extent* extent) {
  WEIR_DCHECK(extent->first == nullptr && extent->kind != ExtentKind::kLarge);
  const Bytes granule = layout_.Granule(extent->kind);
  extent->granule_shift = std::countr_zero(granule.count());
  extent->bins = &BinsOf(extent->kind, extent->lane());
  std::vector<std::vector<Block*>>& spare = SpareStarts(extent->kind);
  if (!spare.empty() && spare.back().size() == extent->bytes() / granule) {
    extent->starts = std::move(spare.back());
    spare.pop_back();
  } else {
    extent->starts.assign(extent->bytes() / granule, nullptr);
  }
  Block* hole = blocks_.New();
  hole->addr = extent->base;
  hole->size = extent->bytes();
  hole->extent = extent;
  extent->first = hole;
  StartOf(hole) = hole;
  extent->bins->Insert(hole);
}

Block* BlockHeap::AdoptLarge(Extent* extent, Bytes requested) {
  WEIR_DCHECK(extent->first == nullptr && extent->kind == ExtentKind::kLarge);
  Block* block = blocks_.New();
  block->addr = extent->base;
  block->size = extent->bytes();
  block->requested = requested;
  block->extent = extent;
  extent->first = block;
  extent->live_blocks = 1;
  extent->without_evidence = 1;
  return block;
}

Block* BlockHeap::Allocate(ExtentKind kind, Bytes requested, const Lane& lane) {
  const uint64_t mask = layout_.Granule(kind).count() - 1;
  const Bytes size((requested.count() + mask) & ~mask);
  FitBins& bins = BinsOf(kind, lane);
  Block* block = bins.SmallestFit(size);
  if (block == nullptr) return nullptr;
  bins.Remove(block);
  if (block->size > size) SplitAfter(block, size);
  block->requested = requested;
  ++block->extent->live_blocks;
  ++block->extent->without_evidence;
  return block;
}

void BlockHeap::SplitAfter(Block* block, Bytes size) {
  Block* rest = blocks_.New();
  rest->addr = block->addr + size;
  rest->size = block->size - size;
  rest->extent = block->extent;
  rest->before = block;
  rest->after = block->after;
  if (rest->after != nullptr) rest->after->before = rest;
  block->after = rest;
  block->size = size;
  StartOf(rest) = rest;
  rest->extent->bins->Insert(rest);
}

void BlockHeap::MergeWithNext(Block* block) {
  Block* next = block->after;
  StartOf(next) = nullptr;
  block->size += next->size;
  block->after = next->after;
  if (block->after != nullptr) block->after->before = block;
  blocks_.Delete(next);
}

void BlockHeap::Free(Block* block) {
  Extent* extent = block->extent;
  WEIR_DCHECK(!block->IsFree() && extent->live_blocks > 0);
  --extent->live_blocks;
  if (!block->evidence) --extent->without_evidence;
  block->requested = Bytes();
  block->storage = nullptr;
  block->evidence = false;
  block->other_streams.Clear();
  if (extent->kind == ExtentKind::kLarge) return;
  const bool listed = HolesListed(extent);
  FitBins& bins = *extent->bins;
  if (block->after != nullptr && block->after->IsFree()) {
    if (listed) bins.Remove(block->after);
    MergeWithNext(block);
  }
  if (block->before != nullptr && block->before->IsFree()) {
    if (listed) bins.Remove(block->before);
    block = block->before;
    MergeWithNext(block);
  }
  if (listed) bins.Insert(block);
}

void BlockHeap::Abandon(Extent* extent) {
  WEIR_DCHECK(extent->live_blocks == 0);
  Block* hole = extent->first;
  if (hole == nullptr) return;
  WEIR_DCHECK(hole->after == nullptr);
  if (extent->kind != ExtentKind::kLarge && HolesListed(extent)) extent->bins->Remove(hole);
  if (extent->kind != ExtentKind::kLarge) {
    StartOf(hole) = nullptr;  // the last one: merged blocks have taken theirs back
    std::vector<std::vector<Block*>>& spare = SpareStarts(extent->kind);
    if (spare.size() < kSpareStarts) spare.push_back(std::move(extent->starts));
    extent->starts.clear();
  }
  blocks_.Delete(hole);
  extent->first = nullptr;
}

void BlockHeap::RemoveHoles(Extent* extent) {
  if (extent->kind == ExtentKind::kLarge) return;
  for (Block* block = extent->first; block != nullptr; block = block->after) {
    if (block->IsFree()) extent->bins->Remove(block);
  }
}

void BlockHeap::AddHoles(Extent* extent) {
  if (extent->kind == ExtentKind::kLarge) return;
  for (Block* block = extent->first; block != nullptr; block = block->after) {
    if (block->IsFree()) extent->bins->Insert(block);
  }
}

void BlockHeap::MoveToPool(Extent* extent, PoolId pool) {
  const bool listed = HolesListed(extent);
  if (listed) RemoveHoles(extent);
  extent->pool = pool;
  if (extent->kind != ExtentKind::kLarge) extent->bins = &BinsOf(extent->kind, extent->lane());
  if (listed) AddHoles(extent);
}

void BlockHeap::DropPool(PoolId pool) {
  std::erase_if(bins_, [&](const Bins& bins) { return bins.lane.pool == pool; });
}

Block* BlockHeap::Find(const Extent* extent, DeviceAddr addr) const {
  Block* block = extent->first;
  if (block == nullptr) return nullptr;
  if (extent->kind != ExtentKind::kLarge) {
    uint64_t index = (addr - extent->base).count() >> extent->granule_shift;
    while (extent->starts[index] == nullptr) --index;  // the first entry is never null
    block = extent->starts[index];
  }
  return block->IsFree() ? nullptr : block;
}

Bytes BlockHeap::LargestHole(ExtentKind kind, const Lane& lane) const {
  for (const Bins& bins : bins_) {
    if (bins.lane == lane)
      return kind == ExtentKind::kSlab ? bins.slab->LargestSize() : bins.medium->LargestSize();
  }
  return Bytes();
}

}  // namespace weir
