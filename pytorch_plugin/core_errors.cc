#include "pytorch_plugin/core_errors.h"

#include <algorithm>
#include <cstring>

#include "trace/recorder.h"

namespace weir {
namespace {

int32_t CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return WEIR_OK;
    case absl::StatusCode::kResourceExhausted:
      return WEIR_OUT_OF_MEMORY;
    case absl::StatusCode::kInvalidArgument:
      return WEIR_INVALID;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
      return WEIR_UNAVAILABLE;
    default:
      return WEIR_DEVICE_ERROR;
  }
}

}  // namespace

int32_t Fail(WeirError* error, int32_t code, absl::string_view text) {
  if (error != nullptr) {
    error->code = code;
    if (text.size() >= sizeof(error->text)) {  // cut between lines, else between characters of UTF-8
      const size_t line = text.substr(0, sizeof(error->text)).rfind('\n');
      size_t length = line != text.npos ? line : sizeof(error->text) - 1;
      while (line == text.npos && length > 0 && (text[length] & 0xC0) == 0x80) --length;
      text = text.substr(0, length);
    }
    std::memcpy(error->text, text.data(), text.size());
    error->text[text.size()] = '\0';
  }
  return code;
}

int32_t Fail(WeirError* error, const absl::Status& status) {
  return Fail(error, CodeOf(status), status.message());
}

int32_t FailOn(Device& device, Bytes requested, const absl::Status& status, WeirError* error) {
  if (CodeOf(status) != WEIR_OUT_OF_MEMORY) return Fail(error, status);
  Runtime::Get().CountOom();
  trace::RecordOutOfMemory(device.index.value, requested);
  return Fail(error, WEIR_OUT_OF_MEMORY, OutOfMemoryText(device, requested, std::string(status.message())));
}

}  // namespace weir
