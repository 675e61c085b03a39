#include "trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace weir::trace {
namespace {

// Names come from the job, rank and host from its machine, and all of them end on terminals.
template <typename Iterator>
void MakePrintable(Iterator begin, Iterator end) {
  std::replace_if(
      begin, end, [](char c) { return c < ' ' || c > '~'; }, '?');
}

}  // namespace

absl::StatusOr<std::unique_ptr<Reader>> Reader::Open(const std::string& path) {
  // Non-blocking, for the case that it is a pipe.
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  struct stat info {};
  FILE* file = fdopen(fd, "rb");
  if (file == nullptr) close(fd);
  if (file == nullptr || fstat(fd, &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  std::unique_ptr<Reader> reader(new Reader(path, file));
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, " is no regular file"));
  reader->file_bytes_ = static_cast<uint64_t>(info.st_size);
  absl::Status status = reader->ReadHeader();
  if (!status.ok()) return status;
  return reader;
}

size_t Reader::Read(void* to, size_t bytes) {
  const size_t got = fread(to, 1, bytes, file_.get());
  offset_ += got;
  return got;
}

absl::Status Reader::ReadHeader() {
  const size_t got = Read(&header_, sizeof header_);
  if (memcmp(header_.magic, kMagic, std::min(got, sizeof kMagic)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path_, " is no trace of Weir"));
  }
  if (got >= offsetof(FileHeader, header_bytes) && header_.version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat(path_, " is a trace of version ", header_.version,
                                                   "; this weir reads version ", kVersion,
                                                   ": read it with the weir that wrote it"));
  }
  has_header_ = got == sizeof header_;
  if (!has_header_) {
    cut_bytes_ = got;
    return absl::OkStatus();
  }
  header_.rank[sizeof header_.rank - 1] = '\0';
  header_.host[sizeof header_.host - 1] = '\0';
  MakePrintable(header_.rank, header_.rank + strlen(header_.rank));
  MakePrintable(header_.host, header_.host + strlen(header_.host));
  return header_.header_bytes == sizeof header_ ? absl::OkStatus() : Damaged("its header has another size");
}

absl::Status Reader::Damaged(absl::string_view why) const {
  return absl::DataLossError(absl::StrCat(path_, " is damaged before byte ", offset_, ": ", why));
}

absl::Status Reader::Rewind() {
  if (!has_header_) return absl::OkStatus();
  if (fseek(file_.get(), sizeof header_, SEEK_SET) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_));
  offset_ = sizeof header_;
  cut_bytes_ = 0;
  texts_.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::span<const Record>>> Reader::NextFrame() {
  if (!has_header_) return std::nullopt;
  FrameHeader header;
  const uint64_t start = offset_;
  const size_t got = Read(&header, sizeof header);
  if (memcmp(header.magic, kFrameMagic, std::min(got, sizeof kFrameMagic)) != 0)
    return Damaged("no frame begins there");
  if (got < sizeof header) {
    cut_bytes_ = offset_ - start;
    return std::nullopt;
  }
  if (!FrameDecoder::IsPlausible(header)) return Damaged("a frame has an impossible size");
  compressed_.resize(header.compressed_bytes);
  if (Read(compressed_.data(), compressed_.size()) < compressed_.size()) {
    cut_bytes_ = offset_ - start;
    return std::nullopt;
  }
  FrameDecoder::Frame frame;
  absl::Status status = decoder_.Decode(header, compressed_, &frame);
  if (!status.ok()) return Damaged(status.message());
  status = ReadStrings(frame.strings);
  if (!status.ok()) return status;
  return frame.records;
}

absl::Status Reader::ReadStrings(absl::string_view strings) {
  constexpr size_t kPrefix = sizeof(uint32_t) + sizeof(uint16_t);
  while (!strings.empty()) {
    uint32_t number = 0;
    uint16_t length = 0;
    if (strings.size() < kPrefix) return Damaged("a string is cut");
    memcpy(&number, strings.data(), sizeof number);
    memcpy(&length, strings.data() + sizeof number, sizeof length);
    strings.remove_prefix(kPrefix);
    if (number == 0 || number >= kMostStrings || length > kMostTextBytes || length > strings.size())
      return Damaged("a string is out of range");
    if (texts_.size() <= number) texts_.resize(number + 1);
    std::string& text = texts_[number] = std::string(strings.substr(0, length));
    MakePrintable(text.begin(), text.end());
    strings.remove_prefix(length);
  }
  return absl::OkStatus();
}

const std::string& Reader::TextOf(uint32_t number) const {
  static const auto* unknown = new std::string("?");
  return number < texts_.size() && !texts_[number].empty() ? texts_[number] : *unknown;
}

}  // namespace weir::trace
