// Short stacks of the calling thread: addresses are cheap to take, names are looked up only for a report. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_STACKS_H_
#define WEIR_EMULATED_GPU_DEVICE_STACKS_H_

#include <string>

namespace weir::emulated {

struct ShortStack {
  static constexpr int kMost = 10;
  void* frames[kMost] = {};
  int depth = 0;
};

// The innermost callers, those inside the emulator included.
ShortStack TakeStack();

// "function (library) < function (library)", without the emulator's own frames.
std::string NameFrames(const ShortStack& stack);

// Whether the innermost caller outside the emulator is in the library of this file name.
bool CallerIs(const ShortStack& stack, const char* library);

// A C++ name in its readable form; other text as it is.
std::string Demangled(const char* name);

}  // namespace weir::emulated

#endif
