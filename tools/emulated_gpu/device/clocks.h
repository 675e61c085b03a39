// Vector clocks of the device: what comes before what. Values, used under the lock of order.cc.
//
// Each stream that has had work owns an index. Its works are numbered by ticks, from 1. A work's past is its own tick and,
// for every other index, the newest tick that is ordered before it; a past holds the pasts of everything in it. The
// index of a dead stream is used again only when all its work is known to be complete, and its ticks go on.
#ifndef WEIR_EMULATED_GPU_DEVICE_CLOCKS_H_
#define WEIR_EMULATED_GPU_DEVICE_CLOCKS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace weir::emulated {

using Tick = uint64_t;
using Ticks = std::vector<Tick>;  // by index; a missing entry is 0
inline constexpr uint32_t kNoIndex = UINT32_MAX;

inline Tick At(const Ticks& ticks, uint32_t index) { return index < ticks.size() ? ticks[index] : 0; }

inline void Raise(Ticks& ticks, uint32_t index, Tick tick) {
  if (index >= ticks.size()) ticks.resize(index + 1);
  ticks[index] = std::max(ticks[index], tick);
}

// Cheap to copy: `others` is shared until a join changes it.
struct Past {
  uint32_t index = kNoIndex;
  Tick tick = 0;
  int64_t done = 0;  // when all of it is done, in the nanoseconds of virtual_clock.h
  std::shared_ptr<const Ticks> others;

  // The newest tick of `i` in this past.
  Tick Newest(uint32_t i) const {
    if (i == index) return tick;
    return others == nullptr ? 0 : At(*others, i);
  }

  // Everything in `other` comes before what follows here.
  void Join(const Past& other) {
    done = std::max(done, other.done);
    if (other.index == kNoIndex || Holds(other)) return;
    Ticks joined = others == nullptr ? Ticks() : *others;
    if (other.others != nullptr) {
      for (uint32_t i = 0; i < other.others->size(); ++i) {
        if (i != index && (*other.others)[i] != 0) Raise(joined, i, (*other.others)[i]);
      }
    }
    if (other.index != index) Raise(joined, other.index, other.tick);
    others = std::make_shared<const Ticks>(std::move(joined));
  }

 private:
  // A past that holds another's last tick holds all of it.
  bool Holds(const Past& other) const { return Newest(other.index) >= other.tick; }
};

}  // namespace weir::emulated

#endif
