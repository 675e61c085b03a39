#include "tools/emulated_gpu/device/work_queue.h"

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "tools/emulated_gpu/device/host_functions.h"
#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/profile.h"

namespace weir::emulated {
namespace {

constexpr size_t kMostQueued = 1024;  // a launch on hardware waits when some thousand are queued

struct Work {
  Past past;
  uint64_t serial;  // in the order of enqueueing
  std::function<void()> run;
  void (*function)(void*);  // a host function, if not null
  void* argument;
  uint64_t started;  // the host function's number, 0: not yet
};

struct Queue {
  std::vector<std::deque<Work>> streams;  // by index
  size_t count = 0, host_functions = 0;
  uint64_t last_serial = 0;
  std::optional<uint64_t> seed;  // none: that of the environment
  uint64_t random = 0;
};
auto& queue = *new Queue;  // guarded by Order().mutex

std::deque<Work>& QueueOf(uint32_t index) {
  if (index >= queue.streams.size()) queue.streams.resize(index + 1);
  return queue.streams[index];
}

// The oldest queued work that `past` holds, or null. All that it comes after is older, and `past` holds that too: so when
// it is its turn, that has run.
std::deque<Work>* Oldest(const Past& past) {
  std::deque<Work>* oldest = nullptr;
  for (uint32_t i = 0; i < queue.streams.size(); ++i) {
    std::deque<Work>& works = queue.streams[i];
    if (works.empty() || works.front().past.tick > past.Newest(i)) continue;
    if (oldest == nullptr || works.front().serial < oldest->front().serial) oldest = &works;
  }
  return oldest;
}

// Runs or starts works until none is left: 0, or a host function has to end: its number.
uint64_t RunUntilHostFunction(const Past& past) {
  while (queue.count > 0) {
    std::deque<Work>* works = Oldest(past);
    if (works == nullptr) return 0;
    Work& work = works->front();
    if (work.function != nullptr) {
      if (work.started == 0) work.started = EnqueueHostFunction(work.function, work.argument);
      if (!HostFunctionDone(work.started)) return work.started;
      --queue.host_functions;
    } else {
      work.run();
    }
    works->pop_front();
    --queue.count;
  }
  return 0;
}

// Work of a random stream runs before anything needs it.
void RunSomeEarly() {
  if (SeedLocked() == 0 || DrawLocked(2) == 0) return;
  const uint64_t first = DrawLocked(queue.streams.size());
  for (uint64_t i = 0; i < queue.streams.size(); ++i) {
    const std::deque<Work>& works = queue.streams[(first + i) % queue.streams.size()];
    if (works.empty()) continue;
    const Past past = works.front().past;
    TryRunLocked(past);
    return;
  }
}

void Push(Work work) {
  work.serial = ++queue.last_serial;
  QueueOf(work.past.index).push_back(std::move(work));
  ++queue.count;
}

// The host functions that the host may wait for without a call.
void RunHostFunctionsLate() {
  std::lock_guard<std::mutex> lock(Order().mutex);
  for (size_t i = 0; i < queue.streams.size(); ++i) {
    for (size_t at = 0; at < queue.streams[i].size(); ++at) {
      if (queue.streams[i][at].function == nullptr) continue;
      const Past past = queue.streams[i][at].past;
      TryRunLocked(past);
      break;
    }
  }
}

}  // namespace

void QueueLocked(OrderLock& lock, const Past& past, std::function<void()> run) {
  Push({past, 0, std::move(run), nullptr, nullptr, 0});
  if (!Settings().lazy_streams) {
    RunLocked(lock, past);
    return;
  }
  if (queue.count > kMostQueued) {
    const Past oldest = Oldest(EverythingLocked())->front().past;
    TryRunLocked(oldest);
  }
  RunSomeEarly();
}

void QueueHostFunctionLocked(const Past& past, void (*function)(void*), void* argument) {
  Push({past, 0, {}, function, argument, 0});
  ++queue.host_functions;
  StartHostFunctionThread(RunHostFunctionsLate);
  Settings().lazy_streams ? RunSomeEarly() : static_cast<void>(TryRunLocked(past));
}

void RunLocked(OrderLock& lock, const Past& past) {
  while (const uint64_t number = RunUntilHostFunction(past)) {
    lock.unlock();
    WaitForHostFunction(number);
    lock.lock();
  }
}

bool TryRunLocked(const Past& past) { return RunUntilHostFunction(past) == 0; }

bool TryRunThroughLocked(uint32_t index, Tick tick) {
  std::deque<Work>& works = QueueOf(index);
  auto last = works.rbegin();
  while (last != works.rend() && last->past.tick > tick) ++last;
  if (last == works.rend()) return true;
  const Past past = last->past;
  return TryRunLocked(past);
}

void RunAllLocked(OrderLock& lock) { RunLocked(lock, EverythingLocked()); }

size_t QueuedLocked() { return queue.count; }

bool HostFunctionsQueuedLocked() { return queue.host_functions > 0; }

// xorshift64; the state starts from the seed.
uint64_t DrawLocked(uint64_t bound) {
  if (SeedLocked() == 0 || bound == 0) return 0;
  if (queue.random == 0) queue.random = SeedLocked() * 0x9E3779B97F4A7C15u | 1;
  queue.random ^= queue.random << 13;
  queue.random ^= queue.random >> 7;
  queue.random ^= queue.random << 17;
  return (queue.random >> 11) % bound;
}

uint64_t SeedLocked() { return queue.seed.value_or(Settings().seed); }

void ReseedLocked(uint64_t seed) {
  queue.seed = seed;
  queue.random = 0;
}

}  // namespace weir::emulated
