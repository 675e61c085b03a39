#include "allocator/extent.h"

namespace weir {

const char* ResidencyName(Residency state) {
  switch (state) {
    case Residency::kResident:
      return "resident";
    case Residency::kDraining:
      return "draining";
    case Residency::kInRam:
      return "in RAM";
    case Residency::kFilling:
      return "filling";
    case Residency::kFree:
      return "free";
  }
  return "?";
}

bool Extent::IsValid() const {
  bool slots_expected =
      state == Residency::kInRam || state == Residency::kFilling || state == Residency::kDraining;
  if (slots_expected ? slots.size() != pages.count.count() : !slots.empty()) return false;
  if (state == Residency::kFree) return first == nullptr && live_blocks == 0;
  if (state == Residency::kFilling && fill.event.handle == nullptr) return false;
  uint32_t live = 0, unproven = 0;
  Bytes covered;
  const Block* before = nullptr;
  for (const Block* block = first; block != nullptr; before = block, block = block->after) {
    if (block->extent != this || block->before != before) return false;
    if (before != nullptr && block->addr != before->addr + before->size) return false;
    if (before != nullptr && before->IsFree() && block->IsFree()) return false;
    covered += block->size;
    if (block->IsFree()) continue;
    ++live;
    if (!block->evidence) ++unproven;
  }
  return covered == bytes() && live == live_blocks && unproven == without_evidence;
}

}  // namespace weir
