// A thread that wants the GIL while the interpreter shuts down, under a frame that nothing may unwind through. Loaded by Python.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#define WEIR_TEST_EXPORT __attribute__((visibility("default")))

namespace {

std::atomic<int> thread_id{0};
std::atomic<bool> known{false}, wants{false};

template <typename Function>
Function* Python(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

void TakeGil(void* state) noexcept {
  wants = true;
  Python<void(void*)>("PyEval_RestoreThread")(state);
}

void Run() {
  thread_id = static_cast<int>(syscall(SYS_gettid));
  Python<int()>("PyGILState_Ensure")();
  void* state = Python<void*()>("PyEval_SaveThread")();
  known = true;
  auto* is_finalizing = Python<int()>("Py_IsFinalizing");  // 3.13 and later
  if (is_finalizing == nullptr) is_finalizing = Python<int()>("_Py_IsFinalizing");
  while (is_finalizing() == 0) sched_yield();
  TakeGil(state);
}

}  // namespace

// Called without the GIL. Returns when Python knows the thread.
extern "C" WEIR_TEST_EXPORT void StartLateThread() {
  std::thread(Run).detach();
  while (!known) sched_yield();
}

// Whether the thread wants the GIL and sleeps.
extern "C" WEIR_TEST_EXPORT int LateThreadSleeps() {
  std::ifstream file("/proc/self/task/" + std::to_string(thread_id.load()) + "/stat");
  std::string text;
  std::getline(file, text);
  return wants && text.find(") S ") != std::string::npos;
}

// What pthread_join() gives of a thread that ended with pthread_exit(`result`).
extern "C" WEIR_TEST_EXPORT void* ResultOfAThread(void* result) {
  pthread_t thread;
  void* joined = nullptr;
  if (pthread_create(
          &thread, nullptr, [](void* value) -> void* { pthread_exit(value); }, result) != 0)
    return nullptr;
  pthread_join(thread, &joined);
  return joined;
}
