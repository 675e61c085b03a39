// What `weir doctor` has found: a line for each finding, with a verdict and what to do, and the exit code that they add up to.
#ifndef WEIR_TOOLS_WEIR_COMMAND_DOCTOR_REPORT_H_
#define WEIR_TOOLS_WEIR_COMMAND_DOCTOR_REPORT_H_

#include <string>
#include <vector>

#include "tools/weir_command/exit_codes.h"

namespace weir {

enum class Verdict { kOk, kWarning, kProblem };

// One line of the report.
struct Finding {
  std::string subject;  // "driver", "torch", ...
  Verdict verdict = Verdict::kOk;
  std::string text;
  std::string advice;  // what to do; empty for kOk
};

class DoctorReport {
 public:
  void Ok(const char* subject, const std::string& text);
  void Warn(const char* subject, const std::string& text, const std::string& advice);
  // `code`: kExitUsage for a wrong option, kExitUnavailable where a job could not run under Weir.
  void Problem(ExitCode code, const char* subject, const std::string& text, const std::string& advice);

  ExitCode code() const { return code_; }  // kExitOk without a problem; kExitUnavailable outranks kExitUsage
  std::string AsText() const;
  std::string AsJson() const;

 private:
  std::vector<Finding> findings_;
  ExitCode code_ = kExitOk;
};

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_DOCTOR_REPORT_H_
