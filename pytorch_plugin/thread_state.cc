#include "pytorch_plugin/thread_state.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "pytorch_plugin/python_threads.h"

namespace weir::plugin {
namespace {

thread_local ThreadState* current = nullptr;  // no destructor: reads stay legal while the thread ends
std::atomic<int> pending_ooms{0};
std::atomic<bool> forked{false};

// All that are there. Never destroyed: threads end after static destructors.
struct AllThreads {
  std::mutex mutex;
  std::vector<ThreadState*> states;
};

AllThreads& All() {
  static auto* all = new AllThreads;
  return *all;
}

void FreeState(void* state) {
  current = nullptr;
  {
    std::lock_guard<std::mutex> lock(All().mutex);
    std::erase(All().states, static_cast<ThreadState*>(state));
  }
  delete static_cast<ThreadState*>(state);
}

// As torch names them.
bool IsEngineThread() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return std::strncmp(name, "pt_autograd", 11) == 0;
}

pthread_key_t MakeKey() {
  pthread_key_t key;
  pthread_key_create(&key, &FreeState);
  return key;
}

ThreadState* MakeState() {
  static const pthread_key_t key = MakeKey();
  current = new ThreadState;
  pthread_setspecific(key, current);
  current->python_id = PythonThreadId();
  current->engine = IsEngineThread();
  std::lock_guard<std::mutex> lock(All().mutex);
  All().states.push_back(current);
  return current;
}

}  // namespace

ThreadState& Thread() {
  ThreadState* state = current;
  return state != nullptr ? *state : *MakeState();
}

void ForEachThread(const std::function<void(const ThreadState&)>& each) {
  std::lock_guard<std::mutex> lock(All().mutex);
  for (const ThreadState* state : All().states) each(*state);
}

bool InForkedChild() { return forked.load(std::memory_order_relaxed); }

void WatchForks() {
  pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
}

int PendingOoms() { return pending_ooms.load(std::memory_order_relaxed); }

void CountPendingOoms(int change) { pending_ooms.fetch_add(change, std::memory_order_relaxed); }

}  // namespace weir::plugin
