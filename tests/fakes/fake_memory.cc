#include "tests/fakes/fake_memory.h"

#include <cstdlib>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace weir::fakes {
namespace {

std::string Range(DeviceAddr at, Bytes size) {
  return absl::StrCat("[0x", absl::Hex(at.value()), ", +0x", absl::Hex(size.count()), ")");
}

}  // namespace

FakeMemory::~FakeMemory() {
  for (auto& [at, region] : host_) std::free(region->words);
}

std::vector<std::shared_ptr<Region>> FakeMemory::MappedIn(DeviceAddr at, Bytes size) const {
  std::vector<std::shared_ptr<Region>> regions;
  for (auto here = mappings_.lower_bound(at); here != mappings_.end() && here->first < at + size; ++here) {
    regions.push_back(frames_.at(here->second.frame.value));
  }
  return regions;
}

std::shared_ptr<Region> FakeMemory::HostRegion(void* memory) const {
  auto known = host_.find(reinterpret_cast<uintptr_t>(memory));
  return known == host_.end() ? nullptr : known->second;
}

DeviceAddr FakeMemory::Reserve(Bytes size) {
  DeviceAddr at = next_address_;
  next_address_ = at + size + kPageBytes * 16;  // a gap: what runs over the end is caught
  reservations_.emplace(at, size);
  return at;
}

bool FakeMemory::Reserved(DeviceAddr at, Bytes size) const {
  auto after = reservations_.upper_bound(at);
  if (after == reservations_.begin()) return false;
  auto [base, length] = *std::prev(after);
  return at - base + size <= length;
}

FrameHandle FakeMemory::CreateFrame(Bytes size) {
  if (frame_bytes_ + size > physical_) return FrameHandle{};
  auto region = std::make_shared<Region>();
  region->size = size;
  // Never zero: whoever reads memory that was not written gets something that no test expects.
  region->own_words.assign(size.count() / kGranule, 0xdead'0000'0000'0000 + next_frame_);
  region->words = region->own_words.data();
  region->shadow.resize(size.count() / kGranule);
  frame_bytes_ += size;
  peak_frame_bytes_ = std::max(peak_frame_bytes_, frame_bytes_);
  frames_.emplace(next_frame_, std::move(region));
  return FrameHandle{next_frame_++};
}

std::string FakeMemory::ReleaseFrame(FrameHandle frame) {
  auto known = frames_.find(frame.value);
  if (known == frames_.end()) return absl::StrCat("release of an unknown frame ", frame.value);
  if (known->second->mappings != 0)
    return absl::StrCat("release of frame ", frame.value, ", which is mapped");
  frame_bytes_ -= known->second->size;
  frames_.erase(known);
  return "";
}

const FakeMemory::Mapping* FakeMemory::FindMapping(DeviceAddr at, DeviceAddr* start) const {
  auto after = mappings_.upper_bound(at);
  if (after == mappings_.begin()) return nullptr;
  const auto& [base, mapping] = *std::prev(after);
  if (at - base >= mapping.size) return nullptr;
  if (start != nullptr) *start = base;
  return &mapping;
}

std::string FakeMemory::Map(DeviceAddr at, Bytes size, FrameHandle frame) {
  auto known = frames_.find(frame.value);
  if (known == frames_.end()) return absl::StrCat("map of an unknown frame ", frame.value);
  Region& region = *known->second;
  if (region.size != size) return "map of a part of a frame";
  if (region.mappings != 0) return absl::StrCat("frame ", frame.value, " is mapped twice");
  if (!Reserved(at, size)) return absl::StrCat("map outside any reservation: ", Range(at, size));
  auto next = mappings_.lower_bound(at);
  bool overlaps = FindMapping(at) != nullptr || (next != mappings_.end() && next->first - at < size);
  if (overlaps) return absl::StrCat("map over a mapped range: ", Range(at, size));
  mappings_.emplace(at, Mapping{size, frame});
  region.mappings = 1;
  return "";
}

std::string FakeMemory::ForWhole(DeviceAddr at, Bytes size, const std::function<void(Mapping&)>& visit) {
  DeviceAddr end = at + size;
  for (DeviceAddr here = at; here < end;) {
    auto mapping = mappings_.find(here);
    if (mapping == mappings_.end()) return absl::StrCat("no mapping starts at 0x", absl::Hex(here.value()));
    here += mapping->second.size;
    if (here > end) return absl::StrCat(Range(at, size), " ends inside a mapping");
    visit(mapping->second);
  }
  return "";
}

std::string FakeMemory::SetAccess(absl::Span<const DeviceIndex> devices, DeviceAddr at, Bytes size) {
  return ForWhole(at, size, [&](Mapping& mapping) { mapping.access.insert(devices.begin(), devices.end()); });
}

bool FakeMemory::Granted(DeviceIndex device, DeviceAddr at) const {
  const Mapping* mapping = FindMapping(at);
  return mapping != nullptr && mapping->access.contains(device);
}

std::string FakeMemory::Unmap(DeviceAddr at, Bytes size) {
  std::string misuse =
      ForWhole(at, size, [&](Mapping& mapping) { frames_[mapping.frame.value]->mappings = 0; });
  if (!misuse.empty()) return misuse;
  mappings_.erase(mappings_.find(at), mappings_.lower_bound(at + size));
  return "";
}

std::string FakeMemory::Resolve(DeviceAddr at, Bytes size, std::vector<Piece>* pieces) const {
  if (at.value() % kGranule != 0)
    return absl::StrCat("an access that is not aligned to 512: ", Range(at, size));
  for (DeviceAddr end = at + size; at < end;) {
    DeviceAddr base;
    const Mapping* mapping = FindMapping(at, &base);
    if (mapping == nullptr) return absl::StrCat("access to an unmapped address: ", Range(at, end - at));
    if (mapping->access.empty()) return absl::StrCat("access without access rights: ", Range(at, end - at));
    DeviceAddr stop = std::min(end, base + mapping->size);
    uint64_t first = (at - base).count() / kGranule;
    uint64_t count = ((stop - at).count() + kGranule - 1) / kGranule;
    pieces->push_back(Piece{frames_.at(mapping->frame.value), first, count});
    at = stop;
  }
  return "";
}

void* FakeMemory::HostAlloc(Bytes size) {
  if (size > SaturatingSubtract(host_limit_, host_bytes_)) return nullptr;
  Bytes rounded = size.RoundedUpTo(Bytes(4096));
  auto region = std::make_shared<Region>();
  region->size = size;
  region->words = static_cast<uint64_t*>(std::aligned_alloc(4096, rounded.count()));
  region->stride = kGranule / sizeof(uint64_t);
  region->shadow.resize(size.count() / kGranule);
  host_bytes_ += size;
  host_.emplace(reinterpret_cast<uintptr_t>(region->words), region);
  return region->words;
}

std::string FakeMemory::HostFree(void* memory) {
  auto known = host_.find(reinterpret_cast<uintptr_t>(memory));
  if (known == host_.end()) return "free of unknown host memory";
  host_bytes_ -= known->second->size;
  std::free(memory);
  host_.erase(known);
  return "";
}

std::string FakeMemory::ResolveHost(const void* memory, Bytes size, std::vector<Piece>* pieces) const {
  uintptr_t at = reinterpret_cast<uintptr_t>(memory);
  auto after = host_.upper_bound(at);
  if (after == host_.begin()) return "a copy that is not from or to pinned memory";
  const auto& [base, region] = *std::prev(after);
  if (at - base + size.count() > region->size.count()) return "a copy that leaves its pinned memory";
  if ((at - base) % kGranule != 0) return "a copy that is not aligned to 512 in pinned memory";
  pieces->push_back(Piece{region, (at - base) / kGranule, (size.count() + kGranule - 1) / kGranule});
  return "";
}

}  // namespace weir::fakes
