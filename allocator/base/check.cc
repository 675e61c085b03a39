#include "allocator/base/check.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace weir::internal {

CheckFailure::CheckFailure(const char* file, int line, const char* condition) {
  text_ << "weir: check failed at " << file << ":" << line << ": " << condition << " ";
}

CheckFailure::~CheckFailure() {
  text_ << "\n";
  const std::string line = text_.str();
  // One write, not stdio: the line must appear whole even when other threads print, and even in a forked
  // child.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  abort();
}

}  // namespace weir::internal
