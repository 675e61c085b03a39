// Sizes as people write and read them. Pure functions; any thread.
#ifndef WEIR_ALLOCATOR_BASE_SIZE_TEXT_H_
#define WEIR_ALLOCATOR_BASE_SIZE_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"

namespace weir {

// What ParseSize accepts, for messages.
inline constexpr char kSizeForms[] =
    "a size such as 24GiB, 24G (= GiB), 24GB (10^9), 512MiB, 512M or plain bytes";

// "1.50 GiB": the largest binary unit in which the number is at least 1, two decimals; bytes below 1 KiB as
// "512 B".
std::string FormatBytes(Bytes bytes);

// Reads one size: a decimal number, a fraction being allowed before a unit, then nothing (bytes), B, a binary
// unit (K M G T or KiB MiB GiB TiB) or a decimal one (KB MB GB TB). A fraction of a byte is dropped.
// INVALID_ARGUMENT with a sentence that names `text` and what is accepted; never a guess: `24Gb` and `24g`
// are errors.
absl::StatusOr<Bytes> ParseSize(absl::string_view text);

// Reads `80%`: more than 0, at most 100, a fraction being allowed. INVALID_ARGUMENT otherwise.
absl::StatusOr<double> ParsePercent(absl::string_view text);

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BASE_SIZE_TEXT_H_
