// Time of malloc + free through torch's CUDA allocator interface on a recorded sequence (recorded_step.py), of torch's own
// allocator and of Weir in one process and in turns, statistics on. A library
// that compare.py has a Python open, before anything used CUDA.
//
// A pass plays the step once on both. It is cut into batches of kEvents events; each batch is timed on one allocator and at once
// on the other, and who is first changes from batch to batch. With several threads each plays a step of its own; all of them are
// with the same allocator at any time. Prints one JSON line: for each batch the nanoseconds an event takes, of torch and of Weir.
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <barrier>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tools/bench_host/side_by_side.h"

namespace {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;

constexpr size_t kEvents = 128;  // timed together: the clock costs about as much as an event
constexpr int kWarmUp = 10;      // passes

struct Event {
  uint32_t block;
  uint64_t bytes;  // zero: a free
};

// Blocks are numbered from 0, `blocks` in all.
struct Recorded {
  std::vector<Event> before, step;
  uint32_t blocks = 0;
};

Recorded Read(const char* path) {
  std::ifstream file(path);
  Recorded recorded;
  std::vector<Event>* part = &recorded.before;
  for (std::string word; file >> word;) {
    if (word == "step") {
      part = &recorded.step;
      continue;
    }
    Event event{0, 0};
    file >> event.block;
    if (word == "+") file >> event.bytes;
    recorded.blocks = std::max(recorded.blocks, event.block + 1);
    part->push_back(event);
  }
  return recorded;
}

// The step on one allocator, by one thread.
class Player {
 public:
  Player(CUDAAllocator* allocator, const Recorded& recorded)
      : allocator_(allocator), recorded_(recorded), blocks_(recorded.blocks), sizes_(recorded.blocks) {
    Play(recorded.before);
    for (uint32_t block = 0; block < sizes_.size(); ++block)
      if (blocks_[block]) first_.push_back(block);
  }

  // Nanoseconds an event, of the batch that begins at event `at`.
  double Batch(size_t at) {
    const size_t end = std::min(at + kEvents, recorded_.step.size());
    const double time = weir::bench::Timed([&] { Play({recorded_.step.data() + at, end - at}); });
    return time / static_cast<double>(end - at);
  }
  // Everything is as it was before the step. Not timed.
  void Rewind() {
    for (const Event& event : recorded_.step) {
      if (event.bytes != 0) blocks_[event.block].clear();
    }
    for (uint32_t block : first_) {
      if (!blocks_[block]) blocks_[block] = allocator_->allocate(sizes_[block]);
    }
  }

 private:
  void Play(c10::ArrayRef<Event> events) {
    for (const Event& event : events) {
      if (event.bytes == 0) {
        blocks_[event.block].clear();
      } else {
        blocks_[event.block] = allocator_->allocate(event.bytes);
        sizes_[event.block] = event.bytes;
      }
    }
  }

  CUDAAllocator* const allocator_;
  const Recorded& recorded_;
  std::vector<c10::DataPtr> blocks_;
  std::vector<uint64_t> sizes_;
  std::vector<uint32_t> first_;  // alive when the step begins
};

// Nanoseconds an event, batch by batch: of torch's own allocator, of Weir.
using Times = std::vector<std::pair<double, double>>;

Times PlayAll(CUDAAllocator* torchs, CUDAAllocator* weirs, const Recorded& recorded, int passes,
              std::barrier<>& together) {
  Player of_torch(torchs, recorded), of_weir(weirs, recorded);
  Times times;
  for (int pass = 0; pass < kWarmUp + passes; ++pass) {
    for (size_t at = 0; at < recorded.step.size(); at += kEvents) {
      const bool weir_first = (static_cast<size_t>(pass) + at / kEvents) % 2 != 0;
      std::pair<double, double> time;
      for (const bool weir : {weir_first, !weir_first}) {
        together.arrive_and_wait();
        (weir ? time.second : time.first) = (weir ? of_weir : of_torch).Batch(at);
      }
      if (pass >= kWarmUp) times.push_back(time);
    }
    of_torch.Rewind();
    of_weir.Rewind();
  }
  return times;
}

void Print(const std::vector<Times>& of_threads) {
  std::cout << "[";
  const char* comma = "";
  for (const Times& times : of_threads) {
    for (const auto& [torchs, weirs] : times) {
      std::cout << comma << "[" << torchs << ", " << weirs << "]";
      comma = ", ";
    }
  }
  std::cout << "]\n";
}

}  // namespace

// 0, or 1 where Weir is not.
extern "C" __attribute__((visibility("default"))) int bench_replay(const char* file, int passes,
                                                                   int threads) {
  const Recorded recorded = Read(file);
  // Weir replaces it when CUDA starts.
  CUDAAllocator* const torchs = c10::cuda::CUDACachingAllocator::allocator.load();
  at::empty({1}, at::kCUDA);
  CUDAAllocator* const weirs = c10::cuda::CUDACachingAllocator::allocator.load();
  if (weirs == torchs || recorded.step.empty()) {
    std::cerr << "Weir is not there, or the file has no step\n";
    return 1;
  }
  torchs->init(1);
  std::barrier together(threads);
  std::vector<Times> times(static_cast<size_t>(threads));
  std::vector<std::thread> players;
  for (Times& mine : times)
    players.emplace_back([&] { mine = PlayAll(torchs, weirs, recorded, passes, together); });
  for (std::thread& player : players) player.join();
  Print(times);
  return 0;
}
