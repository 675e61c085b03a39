// Costs of short pieces of work as multiples of references that run between them, so that a slow or busy machine shows in
// both alike. One thread.
#ifndef WEIR_TOOLS_BENCH_HOST_SIDE_BY_SIDE_H_
#define WEIR_TOOLS_BENCH_HOST_SIDE_BY_SIDE_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace weir::bench {

// `run` does the work `count` times and returns the nanoseconds that all of them took.
struct Work {
  std::string name;
  int count;
  std::function<double()> run;
};

inline double Timed(const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  run();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

inline double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Nanoseconds: a work's, and each reference's beside it.
struct Sample {
  double cost;
  std::vector<double> references;
};

// Of the quarter of the samples in which the first reference was fastest, when the machine had the least else to do.
inline std::vector<Sample> Quietest(std::vector<Sample> samples) {
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.references[0] < b.references[0]; });
  samples.resize(samples.size() / 4 + 1);
  return samples;
}

// Runs all in turns. Prints one JSON line of medians: the nanoseconds of each reference, and for each work its cost in each
// reference.
inline void PrintCosts(const std::vector<Work>& references, const std::vector<Work>& works, int rounds) {
  const auto nanoseconds = [](const Work& work) {
    work.run();  // what the work before it has left in the caches is not of its making
    return work.run() / work.count;
  };
  std::vector<std::vector<Sample>> samples(works.size());
  for (int round = -rounds / 10; round < rounds; ++round) {  // below 0: a warm-up
    for (size_t i = 0; i < works.size(); ++i) {
      Sample sample;
      for (const Work& reference : references) sample.references.push_back(nanoseconds(reference) / 2);
      sample.cost = nanoseconds(works[i]);
      for (size_t k = 0; k < references.size(); ++k) sample.references[k] += nanoseconds(references[k]) / 2;
      if (round >= 0) samples[i].push_back(std::move(sample));
    }
  }
  for (std::vector<Sample>& of_work : samples) of_work = Quietest(std::move(of_work));
  std::printf("{");
  for (size_t k = 0; k < references.size(); ++k) {
    std::vector<double> values;
    for (const std::vector<Sample>& of_work : samples) {
      for (const Sample& sample : of_work) values.push_back(sample.references[k]);
    }
    std::printf("\"%s\": %.3f, ", references[k].name.c_str(), Median(values));
  }
  for (size_t i = 0; i < works.size(); ++i) {
    std::printf("%s\"%s\": [", i == 0 ? "" : ", ", works[i].name.c_str());
    for (size_t k = 0; k < references.size(); ++k) {
      std::vector<double> costs;
      for (const Sample& sample : samples[i]) costs.push_back(sample.cost / sample.references[k]);
      std::printf("%s%.4f", k == 0 ? "" : ", ", Median(costs));
    }
    std::printf("]");
  }
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace weir::bench

#endif  // WEIR_TOOLS_BENCH_HOST_SIDE_BY_SIDE_H_
