// Time of malloc + free through torch's CUDA allocator interface, whoever is behind it: torch's own, or Weir.
// tools/bench_host/compare.py runs it both ways in alternation. No kernels, no Python.
// Prints one JSON line: nanoseconds for a malloc + free pair, median and 99th percentile over batches of 64
// pairs, for `same` (one size again and again), `mix` (sizes of a training step, freed last in first out) and
// `churn` (a window of 256 live blocks, the oldest freed).
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <vector>

#include "tools/bench_host/step_sizes.h"

namespace {

using Clock = std::chrono::steady_clock;
namespace cuda = c10::cuda::CUDACachingAllocator;

constexpr int kPairs = 64;  // pairs timed together: the clock costs about as much as a pair

struct Times {
  double median;
  double p99;
};

// Runs `batch` (kPairs pairs) `rounds` times after a warm-up. Nanoseconds a pair.
Times Measure(int rounds, const std::function<void()>& batch) {
  for (int i = 0; i < rounds / 10 + 1; ++i) batch();
  std::vector<double> times;
  times.reserve(rounds);
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    batch();
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / kPairs);
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[times.size() * 99 / 100]};
}

void Same(size_t bytes) {
  for (int i = 0; i < kPairs; ++i) {
    const c10::DataPtr block = cuda::get()->allocate(bytes);
  }
}

void Mix(const std::vector<size_t>& sizes, size_t& next) {
  std::vector<c10::DataPtr> blocks;
  blocks.reserve(kPairs);
  for (int i = 0; i < kPairs; ++i) blocks.push_back(cuda::get()->allocate(sizes[next++ % sizes.size()]));
  while (!blocks.empty()) blocks.pop_back();
}

void Churn(const std::vector<size_t>& sizes, size_t& next, std::deque<c10::DataPtr>& window) {
  for (int i = 0; i < kPairs; ++i) {
    window.push_back(cuda::get()->allocate(sizes[next++ % sizes.size()]));
    if (window.size() > 256) window.pop_front();
  }
}

void Print(const char* name, Times times, bool last = false) {
  std::printf("\"%s\": {\"median_ns\": %.1f, \"p99_ns\": %.1f}%s", name, times.median, times.p99,
              last ? "}\n" : ", ");
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 2000;
  at::empty({1}, at::kCUDA);  // starts CUDA, and the allocator with it
  const std::vector<size_t> sizes = weir::bench::StepSizes();
  size_t next = 0;
  std::printf("{");
  Print("same_small", Measure(rounds, [] { Same(4096); }));
  Print("same_large", Measure(rounds, [] { Same(8 << 20); }));
  Print("mix", Measure(rounds, [&] { Mix(sizes, next); }));
  std::deque<c10::DataPtr> window;
  Print("churn", Measure(rounds, [&] { Churn(sizes, next, window); }), true);
  window.clear();
  return 0;
}
