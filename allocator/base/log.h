// Weir's log: lines "weir: ..." on stderr, or in the file that WEIR_LOG names. One message is one line and
// one write(2), so lines of several threads and processes never mix. A message below the level costs one
// relaxed load. Any thread may log, also in a forked child and during exit; no lock is held while writing.
// Nothing fails: a line that cannot be written is dropped.
//   Log(LogLevel::kWarn, "cap ", FormatBytes(cap), " reached");
#ifndef WEIR_ALLOCATOR_BASE_LOG_H_
#define WEIR_ALLOCATOR_BASE_LOG_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace weir {

enum class LogLevel : int { kError = 0, kWarn = 1, kInfo = 2, kDebug = 3 };

// Where lines go and which. `file` is empty for stderr; in it %p is the process id, %h the host, %r the rank,
// %% a %.
struct LogSpec {
  LogLevel level = LogLevel::kWarn;
  std::string file;
};

namespace internal {
inline std::atomic<int> log_level{static_cast<int>(LogLevel::kWarn)};
void WriteLogLine(absl::string_view text);
}  // namespace internal

inline bool LogEnabled(LogLevel level) {
  return static_cast<int>(level) <= internal::log_level.load(std::memory_order_relaxed);
}

// Logs the pieces (absl::StrCat) as one line; line breaks in them become spaces.
template <typename... Pieces>
void Log(LogLevel level, const Pieces&... pieces) {
  if (LogEnabled(level)) internal::WriteLogLine(absl::StrCat(pieces...));
}

// `pattern` with %p, %h, %r and %% replaced; an unknown %x stays as it is.
std::string ExpandLogFile(absl::string_view pattern, long pid, absl::string_view host,
                          absl::string_view rank);

// Applies `spec` to the process; `rank` is what %r means (RankText() in options.h). May be called again.
// Fails with NOT_FOUND or PERMISSION_DENIED, naming the file, when it cannot be opened: lines then go to
// stderr.
absl::Status StartLog(const LogSpec& spec, absl::string_view rank);

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BASE_LOG_H_
