// One frame of a trace: strings and records to bytes, and back (format.h). An encoder or decoder is used by one thread at a
// time; both keep their buffers.
#ifndef WEIR_TRACE_FRAME_CODEC_H_
#define WEIR_TRACE_FRAME_CODEC_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "trace/format.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace weir::trace {

// Appends the definition of a string, its text cut to kMostTextBytes, to the strings of a frame.
void AppendString(uint32_t number, absl::string_view text, std::string* strings);

class FrameEncoder {
 public:
  FrameEncoder();
  ~FrameEncoder();
  FrameEncoder(const FrameEncoder&) = delete;
  FrameEncoder& operator=(const FrameEncoder&) = delete;

  // The frame's bytes, valid until the next call. At most kMostStringBytes and kMostRecords. Empty: no memory.
  std::span<const char> Encode(absl::string_view strings, std::span<const Record> records);

 private:
  ZSTD_CCtx_s* const context_;
  std::vector<char> raw_, frame_;
};

class FrameDecoder {
 public:
  struct Frame {
    absl::string_view strings;
    std::span<const Record> records;
  };
  FrameDecoder();
  ~FrameDecoder();
  FrameDecoder(const FrameDecoder&) = delete;
  FrameDecoder& operator=(const FrameDecoder&) = delete;

  // Whether a header that was read can be one: the magic, and sizes within the limits.
  static bool IsPlausible(const FrameHeader& header);
  // What the frame holds, valid until the next call. `compressed` has the header's length and the header is plausible.
  // DATA_LOSS: it is damaged. Takes no more memory than the limits of format.h, whatever the bytes say.
  absl::Status Decode(const FrameHeader& header, std::span<const char> compressed, Frame* frame);

 private:
  ZSTD_DCtx_s* const context_;
  std::vector<char> raw_;
  std::vector<Record> records_;
};

}  // namespace weir::trace

#endif  // WEIR_TRACE_FRAME_CODEC_H_
