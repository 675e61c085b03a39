#include "allocator/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

namespace weir {
namespace {

// What StartLog was told. Replaced as a whole and never freed, so that a line written during exit or by a
// thread that raced with StartLog still finds one that is complete.
struct LogFile {
  LogFile* replaced;  // keeps the older ones reachable, for leak checkers
  std::string pattern;
  std::string rank;
  long pid;
  int fd;
};
std::atomic<LogFile*> current{nullptr};

std::string HostName() {
  char name[256] = "localhost";
  if (gethostname(name, sizeof(name) - 1) != 0) return "localhost";
  name[sizeof(name) - 1] = '\0';
  return name;
}

LogFile* OpenLogFile(const std::string& pattern, const std::string& rank) {
  const long pid = getpid();
  const std::string path = ExpandLogFile(pattern, pid, HostName(), rank);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  return new LogFile{current.load(std::memory_order_acquire), pattern, rank, pid, fd};
}

int CurrentFd() {
  LogFile* file = current.load(std::memory_order_acquire);
  if (file == nullptr) return STDERR_FILENO;
  if (file->pid != getpid() && file->pattern.find("%p") != std::string::npos) {
    // A forked child: its lines go to its own file.
    file = OpenLogFile(file->pattern, file->rank);
    current.store(file, std::memory_order_release);
  }
  return file->fd >= 0 ? file->fd : STDERR_FILENO;
}

}  // namespace

std::string ExpandLogFile(absl::string_view pattern, long pid, absl::string_view host,
                          absl::string_view rank) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    switch (next) {
      case 'p':
        absl::StrAppend(&path, pid);
        break;
      case 'h':
        absl::StrAppend(&path, host);
        break;
      case 'r':
        absl::StrAppend(&path, rank);
        break;
      case '%':
        path += '%';
        break;
      default:
        path += pattern[i];
        continue;
    }
    ++i;
  }
  return path;
}

absl::Status StartLog(const LogSpec& spec, absl::string_view rank) {
  internal::log_level.store(static_cast<int>(spec.level), std::memory_order_relaxed);
  if (spec.file.empty()) {
    current.store(new LogFile{current.load(std::memory_order_acquire), "", "", getpid(), STDERR_FILENO},
                  std::memory_order_release);
    return absl::OkStatus();
  }
  LogFile* file = OpenLogFile(spec.file, std::string(rank));
  const int error = errno;
  current.store(file, std::memory_order_release);
  if (file->fd >= 0) return absl::OkStatus();
  return absl::ErrnoToStatus(error,
                             absl::StrCat("WEIR_LOG: cannot write ", spec.file, "; lines go to stderr"));
}

namespace internal {

void WriteLogLine(absl::string_view text) {
  std::string line = absl::StrCat("weir: ", text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  const int saved = errno;  // a log line must not disturb the caller's errno
  ssize_t written;
  do {
    written = write(CurrentFd(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  errno = saved;
}

}  // namespace internal
}  // namespace weir
