#include "trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "trace/format.h"

namespace weir::trace {
namespace {

absl::Status Refusal(const std::string& path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("cannot write ", path, ": ", why));
}

// Removes what lies at `path` if a new trace may take its place.
absl::Status RemoveOldTrace(const std::string& path) {
  // Non-blocking, so that a pipe at the path does not hold the job up.
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return Refusal(path, errno == ELOOP ? "it is a link" : strerror(errno));
  }
  struct stat info {};
  char magic[sizeof kMagic] = {};
  std::string why;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || read(fd, magic, sizeof magic) != sizeof magic ||
      memcmp(magic, kMagic, sizeof magic) != 0) {
    why = "it exists and is no trace of Weir";
  } else if (info.st_uid != geteuid()) {
    why = "it is the trace of another user";
  } else if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    why = "another process writes its trace there (put %p into the name)";
  } else if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    why = strerror(errno);
  }
  close(fd);
  return why.empty() ? absl::OkStatus() : Refusal(path, why);
}

}  // namespace

absl::StatusOr<TraceFile> TraceFile::Create(const std::string& path) {
  constexpr int kTries = 3;  // another process may make the file between our look and our try
  for (int i = 0; i < kTries; ++i) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
      // Held until the process ends; a file system without locks does without.
      if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        return Refusal(path, "another process has taken it");
      }
      TraceFile file;
      file.path_ = path;
      file.fd_ = fd;
      return file;
    }
    if (errno != EEXIST) return Refusal(path, strerror(errno));
    absl::Status removed = RemoveOldTrace(path);
    if (!removed.ok()) return removed;
  }
  return Refusal(path, "other processes write it");
}

TraceFile& TraceFile::operator=(TraceFile&& other) noexcept {
  if (this == &other) return *this;
  Close();
  path_ = std::move(other.path_);
  fd_ = std::exchange(other.fd_, -1);
  size_ = other.size_;
  return *this;
}

absl::Status TraceFile::Append(std::span<const char> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = write(fd_, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      const int error = wrote < 0 ? errno : ENOSPC;
      // A reader takes whole frames anyway: if this fails too, it reports a few bytes as cut.
      if (done > 0 && ftruncate(fd_, static_cast<off_t>(size_)) != 0) return Refusal(path_, strerror(error));
      return Refusal(path_, strerror(error));
    }
    done += static_cast<size_t>(wrote);
  }
  size_ += bytes.size();
  return absl::OkStatus();
}

void TraceFile::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace weir::trace
