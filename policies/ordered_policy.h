// The policies that only order the candidates: `lru` (least recently touched first) and, in test builds, `youngest`
// (most recently created first: the adversary that finds pins that end too early, see shared rule R1).
#ifndef WEIR_POLICIES_ORDERED_POLICY_H_
#define WEIR_POLICIES_ORDERED_POLICY_H_

#include "policies/policy.h"

namespace weir {

class LruPolicy final : public Policy {
 public:
  std::string_view name() const override { return "lru"; }
  Offer offer() const override { return Offer::kLeastRecentlyTouched; }
  std::vector<size_t> PickVictims(const std::vector<Candidate>& candidates, PageCount needed) const override;
};

class YoungestPolicy final : public Policy {
 public:
  std::string_view name() const override { return "youngest"; }
  std::vector<size_t> PickVictims(const std::vector<Candidate>& candidates, PageCount needed) const override;
};

}  // namespace weir

#endif  // WEIR_POLICIES_ORDERED_POLICY_H_
