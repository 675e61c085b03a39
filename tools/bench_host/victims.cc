// How a touch and the choice of a victim grow with the number of live blocks, under `lru`, with a driver that does nothing:
// bench_victims. Prints, for 10^2 to 10^6 blocks, the nanoseconds of a touch and of a pair of moves (one tensor back, another
// one chosen and sent away), and each in times of that for 10^2. Exits 1 when a touch grew more than 1.2 times, or a pair of
// moves more than the logarithm squared.
//
// `touch` goes round 64 blocks that lie evenly among all, so that it tells of the algorithm; `any` goes round all of them, so
// that with many blocks it tells of the processor's caches too.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "policies/ordered_policy.h"
#include "tools/bench_host/full_card.h"
#include "tools/bench_host/side_by_side.h"

namespace {

using weir::bench::FullCard;
using weir::bench::Timed;

constexpr int kRounds = 200;
constexpr uint64_t kTouched = 64;

struct Costs {
  double touch, any, moves;
};

// Of the quietest tenth: the least that it takes.
double Least(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 10];
}

template <typename Piece>
double Measure(uint64_t count, Piece piece) {
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    times.push_back(Timed([&] {
                      for (uint64_t i = 0; i < count; ++i) piece(i);
                    }) /
                    static_cast<double>(count));
  }
  return Least(times);
}

Costs CostsOf(uint64_t blocks) {
  static const weir::LruPolicy lru;
  FullCard card(blocks, lru);
  uint64_t at = 0;
  const auto one_of_few = [&](uint64_t i) { card.Touch(1 + i * (blocks - 1) / kTouched); };
  // A prime stride visits all, far apart.
  const auto any = [&](uint64_t) { card.Touch(1 + (at += 7919) % blocks); };
  const double touch = Measure(kTouched, one_of_few), touch_any = Measure(kTouched, any);
  // In the order of touches again: from here on each move brings the oldest back.
  for (uint64_t i = 1; i <= blocks; ++i) card.Touch(i);
  return {touch, touch_any, Measure(16, [&](uint64_t) { card.Move(); })};
}

}  // namespace

int main() {
  std::printf("%10s%12s%12s%12s%9s%9s%9s%9s\n", "blocks", "touch, ns", "any, ns", "moves, ns", "touch", "any",
              "moves", "log^2");
  Costs first{};
  bool fine = true;
  for (const uint64_t blocks : {100, 1000, 10000, 100000, 1000000}) {
    const Costs costs = CostsOf(blocks);
    if (blocks == 100) first = costs;
    const double logs = std::pow(std::log(static_cast<double>(blocks)) / std::log(100.0), 2);
    const double touch = costs.touch / first.touch, moves = costs.moves / first.moves;
    std::printf("%10lu%12.0f%12.0f%12.0f%9.2f%9.2f%9.2f%9.2f\n", blocks, costs.touch, costs.any, costs.moves,
                touch, costs.any / first.any, moves, logs);
    fine = fine && touch <= 1.2 && moves <= logs;
    std::fflush(stdout);
  }
  return fine ? 0 : 1;
}
