// Where the job's Python threads are, for safe_points.h: at which instruction of which frame, and what is below it. Uses
// Python's C API by name, as python_hooks.cc does; runs no Python code. Any thread.
#ifndef WEIR_PYTORCH_PLUGIN_PYTHON_THREADS_H_
#define WEIR_PYTORCH_PLUGIN_PYTHON_THREADS_H_

#include <cstdint>
#include <vector>

namespace weir::plugin {

struct PythonThread {
  uint64_t id = 0;  // never used again
  // The innermost frame and its instruction: where one of them differs the thread has come back to Python in between.
  const void* frame = nullptr;  // null: runs no Python code
  long instruction = 0;
  bool waits = false;     // in a wait of the standard library: in no op
  bool backward = false;  // some frame waits for a backward pass
};

// False: no Python, none that tells of its threads, or one without a GIL. Then the functions below must not be called.
bool HasPythonThreads();

// Of the calling thread, 0 if Python does not know it. Needs no GIL.
uint64_t PythonThreadId();

// The GIL for a while. Not while Python ends.
class WithGil {
 public:
  WithGil();
  ~WithGil();
  explicit operator bool() const { return held_; }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  bool held_;
  int state_ = 0;
};

// All of them, the calling one too. The GIL is held.
std::vector<PythonThread> PythonThreads();

// Whether the job has a group of processes whose collectives may run on threads of their own: any but NCCL's, which queues all
// its work on the device. The GIL is held.
bool HasHostCollectives();

// Has `call` run between two instructions of Python's main thread, with the GIL, some time. False: too many are waiting.
bool CallBetweenInstructions(int (*call)(void*));

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_PYTHON_THREADS_H_
