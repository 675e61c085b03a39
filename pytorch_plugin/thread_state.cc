#include "pytorch_plugin/thread_state.h"

#include <pthread.h>

#include <atomic>

namespace weir::plugin {
namespace {

thread_local ThreadState* current = nullptr;  // no destructor: reads stay legal while the thread ends
std::atomic<int> pending_ooms{0};
std::atomic<bool> forked{false};

void FreeState(void* state) {
  current = nullptr;
  delete static_cast<ThreadState*>(state);
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
  return current;
}

}  // namespace

ThreadState& Thread() {
  ThreadState* state = current;
  return state != nullptr ? *state : *MakeState();
}

bool InForkedChild() { return forked.load(std::memory_order_relaxed); }

void WatchForks() {
  pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
}

int PendingOoms() { return pending_ooms.load(std::memory_order_relaxed); }

void CountPendingOoms(int change) { pending_ooms.fetch_add(change, std::memory_order_relaxed); }

}  // namespace weir::plugin
