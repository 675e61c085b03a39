// Choosing what leaves VRAM. Values in, values out: a policy has no state, no lock, no clock and does nothing; the same
// candidates give the same choice in a running job and in a replay.
#ifndef WEIR_POLICIES_POLICY_H_
#define WEIR_POLICIES_POLICY_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "allocator/base/units.h"

namespace weir {

// One extent that may leave now.
struct Candidate {
  uint64_t number = 0;      // order of creation: larger is younger
  uint64_t last_touch = 0;  // larger is more recent
  PageCount pages;          // VRAM it would give back
};

// What a policy wants to see of a large number of candidates.
enum class Offer {
  kAll,                  // all of them
  kLeastRecentlyTouched  // in this order, as many as hold the pages that are needed: the choice is the same
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  virtual Offer offer() const { return Offer::kAll; }
  // Indexes into `candidates`, in the order in which they should leave, whose pages add up to at least `needed`; all
  // of them if they do not suffice.
  virtual std::vector<size_t> PickVictims(const std::vector<Candidate>& candidates,
                                          PageCount needed) const = 0;
};

}  // namespace weir

#endif  // WEIR_POLICIES_POLICY_H_
