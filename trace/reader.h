// Reads a trace, frame by frame. Takes every whole frame: of a trace that was cut anywhere (the job was killed, or still
// runs) only what follows the last whole frame is missing, and its size is told.
//
// Nothing in the file is trusted. Whatever it holds, reading ends in an error or in records, and memory stays within the
// limits of format.h: one frame, and at most kMostStrings names. One thread.
#ifndef WEIR_TRACE_READER_H_
#define WEIR_TRACE_READER_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace/format.h"
#include "trace/frame_codec.h"

namespace weir::trace {

class Reader {
 public:
  // NOT_FOUND, PERMISSION_DENIED ...: the file cannot be read. INVALID_ARGUMENT: it is no trace, or one of another version.
  // Every message names the file.
  static absl::StatusOr<std::unique_ptr<Reader>> Open(const std::string& path);

  // The records of the next frame, valid until the next call; nothing after the last whole one. DATA_LOSS: the file is damaged.
  absl::StatusOr<std::optional<std::span<const Record>>> NextFrame();
  // To the first frame again.
  absl::Status Rewind();

  const std::string& path() const { return path_; }
  // Null when the trace was cut inside its header: it has no frames then.
  // Its rank and host are printable.
  const FileHeader* header() const { return has_header_ ? &header_ : nullptr; }
  // After the last frame: bytes behind it.
  uint64_t cut_bytes() const { return cut_bytes_; }
  uint64_t file_bytes() const { return file_bytes_; }
  // A string of the frames read so far, printable ASCII only (anything else is a "?"); "?" for none.
  const std::string& TextOf(uint32_t number) const;

 private:
  struct Closer {
    void operator()(FILE* file) const { fclose(file); }
  };
  Reader(std::string path, FILE* file) : path_(std::move(path)), file_(file) {}
  absl::Status ReadHeader();
  absl::Status ReadStrings(absl::string_view strings);
  absl::Status Damaged(absl::string_view why) const;
  size_t Read(void* to, size_t bytes);

  const std::string path_;
  const std::unique_ptr<FILE, Closer> file_;
  FrameDecoder decoder_;
  FileHeader header_{};
  bool has_header_ = false;
  uint64_t file_bytes_ = 0;
  uint64_t offset_ = 0;  // of the next byte to read
  uint64_t cut_bytes_ = 0;
  std::vector<char> compressed_;
  std::vector<std::string> texts_;
};

}  // namespace weir::trace

#endif  // WEIR_TRACE_READER_H_
