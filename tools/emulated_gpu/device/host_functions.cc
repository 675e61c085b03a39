#include "tools/emulated_gpu/device/host_functions.h"

#include <chrono>
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
  std::deque<Work> waiting;         // guarded by mutex
  bool running = false;             // guarded by mutex: the thread exists
  uint64_t enqueued = 0, done = 0;  // guarded by mutex
};

Queue& TheQueue() {
  static Queue* queue = new Queue;  // lives as long as its thread
  return *queue;
}

constexpr auto kIdle = std::chrono::milliseconds(100);

void Run(void (*look)()) {
  Queue& queue = TheQueue();
  std::unique_lock<std::mutex> lock(queue.mutex);
  while (true) {
    while (!queue.changed.wait_for(lock, kIdle, [&] { return !queue.waiting.empty(); })) {
      lock.unlock();
      look();
      lock.lock();
    }
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

void StartHostFunctionThread(void (*look)()) {
  Queue& queue = TheQueue();
  std::lock_guard<std::mutex> lock(queue.mutex);
  if (!queue.running) std::thread(Run, look).detach();
  queue.running = true;
}

uint64_t EnqueueHostFunction(void (*function)(void*), void* argument) {
  Queue& queue = TheQueue();
  std::lock_guard<std::mutex> lock(queue.mutex);
  queue.waiting.push_back({function, argument});
  queue.changed.notify_all();
  return ++queue.enqueued;
}

// Under the mutex, which race detectors see from outside this library.
bool HostFunctionDone(uint64_t number) {
  Queue& queue = TheQueue();
  std::lock_guard<std::mutex> lock(queue.mutex);
  return queue.done >= number;
}

void WaitForHostFunction(uint64_t number) {
  Queue& queue = TheQueue();
  std::unique_lock<std::mutex> lock(queue.mutex);
  queue.changed.wait(lock, [&] { return queue.done >= number; });
}

}  // namespace weir::emulated
