#include "trace/frame_codec.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace weir::trace {
namespace {

constexpr int kLevel = 1;  // the fastest that still finds repeated ops

}  // namespace

void AppendString(uint32_t number, absl::string_view text, std::string* strings) {
  text = text.substr(0, kMostTextBytes);
  const auto length = static_cast<uint16_t>(text.size());
  strings->append(reinterpret_cast<const char*>(&number), sizeof number);
  strings->append(reinterpret_cast<const char*>(&length), sizeof length);
  strings->append(text.data(), text.size());
}

FrameEncoder::FrameEncoder() : context_(ZSTD_createCCtx()) {
  if (context_ == nullptr) return;
  ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
}

FrameEncoder::~FrameEncoder() { ZSTD_freeCCtx(context_); }

std::span<const char> FrameEncoder::Encode(absl::string_view strings, std::span<const Record> records) {
  if (context_ == nullptr) return {};
  const size_t record_bytes = records.size_bytes();
  raw_.resize(strings.size() + record_bytes);
  std::copy(strings.begin(), strings.end(), raw_.begin());
  if (record_bytes > 0) std::memcpy(raw_.data() + strings.size(), records.data(), record_bytes);
  frame_.resize(sizeof(FrameHeader) + ZSTD_compressBound(raw_.size()));
  const size_t compressed = ZSTD_compress2(context_, frame_.data() + sizeof(FrameHeader),
                                           frame_.size() - sizeof(FrameHeader), raw_.data(), raw_.size());
  if (ZSTD_isError(compressed) != 0) return {};
  FrameHeader header{{},
                     static_cast<uint32_t>(compressed),
                     static_cast<uint32_t>(strings.size()),
                     static_cast<uint32_t>(records.size())};
  std::memcpy(header.magic, kFrameMagic, sizeof kFrameMagic);
  std::memcpy(frame_.data(), &header, sizeof header);
  return {frame_.data(), sizeof header + compressed};
}

FrameDecoder::FrameDecoder() : context_(ZSTD_createDCtx()) {}
FrameDecoder::~FrameDecoder() { ZSTD_freeDCtx(context_); }

bool FrameDecoder::IsPlausible(const FrameHeader& header) {
  return std::memcmp(header.magic, kFrameMagic, sizeof kFrameMagic) == 0 &&
         header.compressed_bytes <= kMostCompressedBytes && header.string_bytes <= kMostStringBytes &&
         header.records <= kMostRecords;
}

absl::Status FrameDecoder::Decode(const FrameHeader& header, std::span<const char> compressed, Frame* frame) {
  if (context_ == nullptr) return absl::ResourceExhaustedError("no memory to decompress");
  const size_t record_bytes = header.records * sizeof(Record);
  raw_.resize(header.string_bytes + record_bytes);
  const size_t size =
      ZSTD_decompressDCtx(context_, raw_.data(), raw_.size(), compressed.data(), compressed.size());
  if (ZSTD_isError(size) != 0) return absl::DataLossError(ZSTD_getErrorName(size));
  if (size != raw_.size()) return absl::DataLossError("it holds less than it says");
  records_.resize(header.records);  // copied for their alignment
  if (record_bytes > 0) std::memcpy(records_.data(), raw_.data() + header.string_bytes, record_bytes);
  *frame = Frame{absl::string_view(raw_.data(), header.string_bytes), records_};
  return absl::OkStatus();
}

}  // namespace weir::trace
