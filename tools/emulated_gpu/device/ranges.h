// A map of byte ranges that do not overlap, each with a value. What is set later wins, ranges keep their borders: two that
// touch stay two. Not synchronised.
#ifndef WEIR_EMULATED_GPU_DEVICE_RANGES_H_
#define WEIR_EMULATED_GPU_DEVICE_RANGES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace weir::emulated {

template <typename Value>
class Ranges {
 public:
  void Set(uintptr_t begin, size_t size, const Value& value) {
    Clear(begin, size);
    if (size > 0) ranges_[begin] = {begin + size, value};
  }

  // What lies outside [begin, begin + size) stays.
  void Clear(uintptr_t begin, size_t size) {
    const uintptr_t end = begin + size;
    for (auto range = FirstAfter(begin); range != ranges_.end() && range->first < end;) {
      const uintptr_t from = range->first;
      const Entry entry = range->second;
      range = ranges_.erase(range);
      if (from < begin) ranges_[from] = {begin, entry.value};
      if (entry.end > end) ranges_[end] = {entry.end, entry.value};
    }
  }

  // Removes the range that holds the address, as a whole.
  void ClearAround(uintptr_t address) {
    const auto range = FirstAfter(address);
    if (range != ranges_.end() && range->first <= address) ranges_.erase(range);
  }

  // Calls `visit(begin, end, value)` for each part of a range in [begin, begin + size), in order.
  template <typename Visit>
  void ForEach(uintptr_t begin, size_t size, Visit&& visit) const {
    const uintptr_t end = begin + size;
    auto range = ranges_.upper_bound(begin);
    if (range != ranges_.begin() && std::prev(range)->second.end > begin) --range;
    for (; range != ranges_.end() && range->first < end; ++range) {
      visit(std::max(begin, range->first), std::min(end, range->second.end), range->second.value);
    }
  }

 private:
  struct Entry {
    uintptr_t end = 0;
    Value value{};
  };
  using Map = std::map<uintptr_t, Entry>;

  // The first range that ends after `address`.
  typename Map::iterator FirstAfter(uintptr_t address) {
    auto range = ranges_.upper_bound(address);
    if (range != ranges_.begin() && std::prev(range)->second.end > address) --range;
    return range;
  }

  Map ranges_;
};

}  // namespace weir::emulated

#endif
