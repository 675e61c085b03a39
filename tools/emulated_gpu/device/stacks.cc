#include "tools/emulated_gpu/device/stacks.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdlib>
#include <cstring>

namespace weir::emulated {
namespace {

constexpr size_t kLongestName = 60;  // templates of torch fill pages

const char* FileName(const char* path) {
  const std::string text = path;
  return path + (text.rfind('/') == std::string::npos ? 0 : text.rfind('/') + 1);
}

void* OwnLibrary() {
  Dl_info self;
  return dladdr(reinterpret_cast<void*>(&OwnLibrary), &self) == 0 ? nullptr : self.dli_fbase;
}

}  // namespace

ShortStack TakeStack() {
  ShortStack stack;
  stack.depth = backtrace(stack.frames, ShortStack::kMost);
  return stack;
}

std::string NameFrames(const ShortStack& stack) {
  static const void* const own = OwnLibrary();
  std::string text;
  for (int i = 0; i < stack.depth; ++i) {
    Dl_info found;
    // A return address may be the first byte of the next function.
    if (dladdr(static_cast<char*>(stack.frames[i]) - 1, &found) == 0 || found.dli_fbase == own) continue;
    if (found.dli_sname == nullptr) continue;  // most of torch has no names
    std::string name = Demangled(found.dli_sname);
    if (name.size() > kLongestName) name = name.substr(0, kLongestName) + "...";
    text += (text.empty() ? "" : " < ") + name + " (" + FileName(found.dli_fname) + ")";
  }
  return text.empty() ? "unknown" : text;
}

bool CallerIs(const ShortStack& stack, const char* library) {
  static const void* const own = OwnLibrary();
  for (int i = 0; i < stack.depth; ++i) {
    Dl_info found;
    if (dladdr(static_cast<char*>(stack.frames[i]) - 1, &found) == 0 || found.dli_fbase == own) continue;
    return std::strcmp(FileName(found.dli_fname), library) == 0;
  }
  return false;
}

std::string Demangled(const char* name) {
  if (std::strncmp(name, "_Z", 2) != 0) return name;  // "f" would be the type float
  int status = 0;
  char* readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::string text = status == 0 ? readable : name;
  std::free(readable);
  return text;
}

}  // namespace weir::emulated
