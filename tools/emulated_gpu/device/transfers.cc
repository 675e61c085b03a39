#include "tools/emulated_gpu/device/transfers.h"

#include <algorithm>
#include <cstring>

#include "tools/emulated_gpu/device/host_pages.h"
#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/reports.h"

namespace weir::emulated {
namespace {

void FillRow(char* to, unsigned value, size_t element, size_t width) {
  if (element == 1) {
    std::memset(to, static_cast<int>(value), width);
    return;
  }
  for (size_t at = 0; at + element <= width; at += element) std::memcpy(to + at, &value, element);
}

// A buffer that is used again is written as a whole, so of large ones every eighth cache line is enough.
constexpr size_t kWhole = 4096, kSample = 64, kStep = 512;

uint64_t Mix(uint64_t sum, const char* bytes, size_t count) {
  for (; count >= 8; bytes += 8, count -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 29;
  }
  for (; count > 0; ++bytes, --count) sum = (sum ^ static_cast<unsigned char>(*bytes)) * 0x100000001B3u;
  return sum;
}

}  // namespace

size_t Span(size_t pitch, const Rows& rows) {
  return rows.height == 0 || rows.width == 0 ? 0 : pitch * (rows.height - 1) + rows.width;
}

void Transfer::Stage() {
  staged_ = std::make_shared<std::vector<char>>(rows_.width * rows_.height);
  for (size_t row = 0; row < rows_.height; ++row) {
    std::memcpy(staged_->data() + row * rows_.width, static_cast<const char*>(from_) + row * rows_.from_pitch,
                rows_.width);
  }
  from_ = staged_->data();
  rows_.from_pitch = rows_.width;
}

void Transfer::Watch(uint64_t work) {
  watched_by_ = work;
  checksum_ = Checksum();
}

uint64_t Transfer::Checksum() const {
  uint64_t sum = 0;
  for (size_t row = 0; row < rows_.height; ++row) {
    const char* bytes = static_cast<const char*>(from_) + row * rows_.from_pitch;
    if (rows_.width <= kWhole) {
      sum = Mix(sum, bytes, rows_.width);
      continue;
    }
    for (size_t at = 0; at < rows_.width; at += kStep) {
      sum = Mix(sum, bytes + at, std::min(kSample, rows_.width - at));
    }
  }
  return sum;
}

void Transfer::Run() const {
  if (watched_by_ != 0 && Checksum() != checksum_) {
    const WorkLog& log = Order().log;
    Report(
        "the host wrote to the pinned memory 0x%lx + %zu while it was in flight: %s reads it | enqueued at "
        "%s",
        reinterpret_cast<uintptr_t>(from_), Span(rows_.from_pitch, rows_), log.Describe(watched_by_).c_str(),
        log.DescribeStack(watched_by_).c_str());
  }
  if (from_ == nullptr && element_ == kDrops) {
    DropPages(reinterpret_cast<uintptr_t>(to_), rows_.width);
    return;
  }
  for (size_t row = 0; row < rows_.height; ++row) {
    char* to = static_cast<char*>(to_) + row * rows_.to_pitch;
    if (from_ == nullptr) {
      FillRow(to, value_, element_, rows_.width);
    } else {
      std::memmove(to, static_cast<const char*>(from_) + row * rows_.from_pitch, rows_.width);
    }
  }
}

}  // namespace weir::emulated
