#include "policies/ordered_policy.h"

#include <algorithm>
#include <numeric>

namespace weir {
namespace {

// The shortest prefix of `candidates`, sorted by `before`, that holds `needed` pages.
template <typename Before>
std::vector<size_t> Prefix(const std::vector<Candidate>& candidates, PageCount needed, Before before) {
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return before(candidates[a], candidates[b]); });
  PageCount sum;
  size_t taken = 0;
  while (taken < order.size() && sum < needed) sum += candidates[order[taken++]].pages;
  order.resize(taken);
  return order;
}

}  // namespace

std::vector<size_t> LruPolicy::PickVictims(const std::vector<Candidate>& candidates, PageCount needed) const {
  return Prefix(candidates, needed, [](const Candidate& a, const Candidate& b) {
    return a.last_touch != b.last_touch ? a.last_touch < b.last_touch : a.number < b.number;
  });
}

std::vector<size_t> YoungestPolicy::PickVictims(const std::vector<Candidate>& candidates,
                                                PageCount needed) const {
  return Prefix(candidates, needed,
                [](const Candidate& a, const Candidate& b) { return a.number > b.number; });
}

}  // namespace weir
