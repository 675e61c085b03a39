#include "tools/bench_host/moves.h"

#include <cstdlib>
#include <memory>

#include "policies/ordered_policy.h"
#include "tools/bench_host/full_card.h"

namespace weir::bench {
namespace {

// The same choice as lru's, and every tensor is offered to it.
class LruOfAll final : public Policy {
 public:
  std::string_view name() const override { return "lru of all"; }
  std::vector<size_t> PickVictims(const std::vector<Candidate>& candidates, PageCount needed) const override {
    return lru_.PickVictims(candidates, needed);
  }

 private:
  LruPolicy lru_;
};

}  // namespace

Work PairsOfMoves(const char* name, uint64_t tensors) {
  constexpr int kMoves = 16;
  static const LruOfAll policy;
  return {name, kMoves, [card = std::make_shared<FullCard>(tensors, policy)] {
            const uint64_t before = card->fetches();
            const double time = Timed([&card] {
              for (int i = 0; i < kMoves; ++i) card->Move();
            });
            if (card->fetches() != before + kMoves) std::abort();  // each touch was a pair of moves
            return time;
          }};
}

}  // namespace weir::bench
