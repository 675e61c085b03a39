// The one table of options. The parser, `weir config`, `weir run --help` and docs/options.md are all made
// from it, and an option that is not in it does not exist. To add an option: a row in option_table.cc and a
// field in Options.
#ifndef WEIR_ALLOCATOR_BASE_OPTION_TABLE_H_
#define WEIR_ALLOCATOR_BASE_OPTION_TABLE_H_

#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/base/options.h"

namespace weir {

struct OptionRow {
  const char* name;      // of the environment variable
  const char* type;      // size, choice, switch ...
  const char* unit;      // of a number; "" if it has none
  const char* preset;    // the default, as one would write it
  const char* accepts;   // the values or the range
  const char* sentence;  // what it does
  const char* flag;      // of `weir run`; "" if only the environment has it
  bool internal;         // set by Weir for itself: accepted, but not shown
  // Reads `text` (never empty) into its field. INVALID_ARGUMENT says what is wrong with the text, without the
  // name.
  absl::Status (*read)(absl::string_view text, Options* options);
};

// In the order in which they are shown.
std::span<const OptionRow> OptionTable();

// nullptr if there is no such option.
const OptionRow* FindOption(absl::string_view name);

// The names that WEIR_POLICY accepts in this build.
std::span<const char* const> PolicyNames();

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BASE_OPTION_TABLE_H_
