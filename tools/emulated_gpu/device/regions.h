// What is mapped or allocated where, as the order checks need it: device mappings and allocations, pinned and registered
// host memory. Used under the lock of order.cc.
#ifndef WEIR_EMULATED_GPU_DEVICE_REGIONS_H_
#define WEIR_EMULATED_GPU_DEVICE_REGIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tools/emulated_gpu/device/access_map.h"
#include "tools/emulated_gpu/device/clocks.h"

namespace weir::emulated {

// The newest work of one stream that may touch a region.
struct RegionUse {
  uint32_t index;
  Tick tick;
  uint64_t work;
};

struct Region {
  uintptr_t begin = 0;
  size_t size = 0;
  Place place = 0;  // of `begin`
  bool host = false;
  std::vector<RegionUse> uses;  // one per stream
  uintptr_t end() const { return begin + size; }
};

class Regions {
 public:
  void Add(uintptr_t begin, size_t size, Place place, bool host) {
    regions_[begin] = {begin, size, place, host, {}};
  }
  // Those that begin in [begin, end).
  void Remove(uintptr_t begin, uintptr_t end) {
    regions_.erase(regions_.lower_bound(begin), regions_.lower_bound(end));
  }

  // The region that holds `address`, or null.
  Region* Find(uintptr_t address) {
    auto region = regions_.upper_bound(address);
    if (region == regions_.begin()) return nullptr;
    --region;
    return address < region->second.end() ? &region->second : nullptr;
  }

  // Calls `visit` for each region that meets [begin, end), in order.
  template <typename Visit>
  void ForEach(uintptr_t begin, uintptr_t end, Visit&& visit) {
    auto region = regions_.upper_bound(begin);
    if (region != regions_.begin() && std::prev(region)->second.end() > begin) --region;
    for (; region != regions_.end() && region->first < end; ++region) visit(region->second);
  }

 private:
  std::map<uintptr_t, Region> regions_;  // by begin; they do not overlap
};

// Keeps the newest use per stream and drops those that are complete.
inline void AddUse(Region& region, const RegionUse& use, const Ticks& completed) {
  size_t kept = 0;
  RegionUse newest = use;
  for (const RegionUse& known : region.uses) {
    if (known.index == use.index) {
      if (known.tick > newest.tick) newest = known;
    } else if (known.tick > At(completed, known.index)) {
      region.uses[kept++] = known;
    }
  }
  region.uses.resize(kept);
  region.uses.push_back(newest);
}

}  // namespace weir::emulated

#endif
