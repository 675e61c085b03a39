#include "tools/emulated_gpu/device/reports.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "tools/emulated_gpu/device/profile.h"

namespace weir::emulated {
namespace {

constexpr int kReportedExit = 70;  // EX_SOFTWARE of sysexits.h

thread_local const char* current_op = "";

void Line(const char* head, const char* format, va_list arguments) {
  char text[4096];
  int length = std::snprintf(text, sizeof text, "%s", head);
  length += std::vsnprintf(text + length, sizeof text - length - 2, format, arguments);
  if (length > static_cast<int>(sizeof text) - 2) length = sizeof text - 2;
  text[length++] = '\n';
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, length);  // one write: lines never mix
}

}  // namespace

Counters& Counted() {
  static Counters counters;
  return counters;
}

void Report(const char* format, ...) {
  Counted().reports.fetch_add(1, std::memory_order_relaxed);
  if (Settings().reports == Reports::kCount) return;
  va_list arguments;
  va_start(arguments, format);
  Line("weir: emulated GPU: report: ", format, arguments);
  va_end(arguments);
  if (Settings().reports == Reports::kLog) return;
  Note("ends the process at its first report (WEIR_EMULATED_REPORTS=abort)");
  _exit(kReportedExit);
}

void Note(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Line("weir: emulated GPU: ", format, arguments);
  va_end(arguments);
}

void NoteNotSupported(const char* name) {
  static std::mutex mutex;
  static auto* told = new std::set<std::string>;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!told->insert(name).second) return;
  }
  Note("%s is not emulated: NOT_SUPPORTED", name);
}

const char* CurrentOp() { return current_op; }
void SetCurrentOp(const char* name) { current_op = name; }

}  // namespace weir::emulated
