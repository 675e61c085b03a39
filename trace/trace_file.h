// The file of a trace while it is written: made safely, appended to in whole pieces.
//
// The file is new, of mode 0600, and no link is followed. What lies at the path already is replaced if it is a trace of this
// user that nobody writes any more; anything else is left alone, and so is the trace of a process that is alive: the
// path needs %p then. One thread at a time.
#ifndef WEIR_TRACE_TRACE_FILE_H_
#define WEIR_TRACE_TRACE_FILE_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weir::trace {

class TraceFile {
 public:
  // Fails with a message that names the path and the reason.
  static absl::StatusOr<TraceFile> Create(const std::string& path);

  TraceFile() = default;
  TraceFile(TraceFile&& other) noexcept { *this = std::move(other); }
  TraceFile& operator=(TraceFile&& other) noexcept;
  ~TraceFile() { Close(); }

  // All of `bytes`, or none of them: what a full disk took in part is cut off again. The message names path and reason.
  absl::Status Append(std::span<const char> bytes);
  void Close();
  bool IsOpen() const { return fd_ >= 0; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace weir::trace

#endif  // WEIR_TRACE_TRACE_FILE_H_
