#include "tools/emulated_gpu/device/host_functions.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace weir::emulated {
namespace {

struct Work {
  void (*function)(void*);
  void* argument;
};

struct Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> waiting;  // guarded by mutex
  bool running = false;      // guarded by mutex: the thread exists
  std::atomic<uint64_t> enqueued{0}, done{0};
};

Queue& TheQueue() {
  static Queue* queue = new Queue;  // lives as long as its thread
  return *queue;
}

void Run() {
  Queue& queue = TheQueue();
  std::unique_lock<std::mutex> lock(queue.mutex);
  while (true) {
    queue.changed.wait(lock, [&] { return !queue.waiting.empty(); });
    const Work work = queue.waiting.front();
    queue.waiting.pop_front();
    lock.unlock();
    work.function(work.argument);
    lock.lock();
    ++queue.done;
    queue.changed.notify_all();
  }
}

}  // namespace

uint64_t EnqueueHostFunction(void (*function)(void*), void* argument) {
  Queue& queue = TheQueue();
  std::lock_guard<std::mutex> lock(queue.mutex);
  if (!queue.running) std::thread(Run).detach();
  queue.running = true;
  queue.waiting.push_back({function, argument});
  queue.changed.notify_all();
  return ++queue.enqueued;
}

bool HostFunctionDone(uint64_t number) { return TheQueue().done.load() >= number; }

void WaitForHostFunction(uint64_t number) {
  if (HostFunctionDone(number)) return;
  Queue& queue = TheQueue();
  std::unique_lock<std::mutex> lock(queue.mutex);
  queue.changed.wait(lock, [&] { return queue.done.load() >= number; });
}

uint64_t LastHostFunction() { return TheQueue().enqueued.load(); }

}  // namespace weir::emulated
