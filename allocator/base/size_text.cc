#include "allocator/base/size_text.h"

#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weir {
namespace {

struct Unit {
  absl::string_view name;
  uint64_t bytes;
};

constexpr std::array<Unit, 14> kUnits = {{{"", 1},
                                          {"B", 1},
                                          {"K", uint64_t{1} << 10},
                                          {"KiB", uint64_t{1} << 10},
                                          {"M", uint64_t{1} << 20},
                                          {"MiB", uint64_t{1} << 20},
                                          {"G", uint64_t{1} << 30},
                                          {"GiB", uint64_t{1} << 30},
                                          {"T", uint64_t{1} << 40},
                                          {"TiB", uint64_t{1} << 40},
                                          {"KB", 1'000},
                                          {"MB", 1'000'000},
                                          {"GB", 1'000'000'000},
                                          {"TB", 1'000'000'000'000}}};

absl::Status NotASize(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a size: give ", kSizeForms));
}

const Unit* FindUnit(absl::string_view name) {
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

// The leading digits of `text`, with at most one point between digits.
absl::string_view LeadingNumber(absl::string_view text) {
  size_t end = 0;
  bool point = false;
  for (; end < text.size(); ++end) {
    if (absl::ascii_isdigit(text[end])) continue;
    const bool inner_point =
        text[end] == '.' && !point && end > 0 && end + 1 < text.size() && absl::ascii_isdigit(text[end + 1]);
    if (!inner_point) break;
    point = true;
  }
  return text.substr(0, end);
}

}  // namespace

std::string FormatBytes(Bytes bytes) {
  constexpr std::array<const char*, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (unit + 1 < kNames.size() && bytes.count() >> (10 * (unit + 1)) != 0) ++unit;
  if (unit == 0) return absl::StrCat(bytes.count(), " B");
  char text[32];
  const double value = static_cast<double>(bytes.count()) / static_cast<double>(uint64_t{1} << (10 * unit));
  snprintf(text, sizeof(text), "%.2f %s", value, kNames[unit]);
  return text;
}

absl::StatusOr<Bytes> ParseSize(absl::string_view text) {
  const absl::string_view number = LeadingNumber(text);
  const Unit* unit = FindUnit(text.substr(number.size()));
  if (number.empty() || unit == nullptr) return NotASize(text);
  if (number.find('.') == absl::string_view::npos) {
    uint64_t count = 0;
    uint64_t bytes = 0;
    if (!absl::SimpleAtoi(number, &count) || __builtin_mul_overflow(count, unit->bytes, &bytes)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is more than 2^64 bytes"));
    }
    return Bytes(bytes);
  }
  double count = 0;
  if (unit->bytes == 1 || !absl::SimpleAtod(number, &count)) return NotASize(text);
  const double bytes = count * static_cast<double>(unit->bytes);
  if (bytes >= 0x1p64)
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is more than 2^64 bytes"));
  return Bytes(static_cast<uint64_t>(bytes));
}

absl::StatusOr<double> ParsePercent(absl::string_view text) {
  const absl::string_view number = LeadingNumber(text);
  double percent = 0;
  const bool form =
      !number.empty() && text.substr(number.size()) == "%" && absl::SimpleAtod(number, &percent);
  if (!form || percent <= 0 || percent > 100) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a share: give more than 0% and at most 100%, such as 80%"));
  }
  return percent;
}

}  // namespace weir
