#include "tools/weir_command/doctor_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

namespace weir {
namespace {

const char* Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kProblem:
      return "problem";
  }
  return "";
}

}  // namespace

void DoctorReport::Ok(const char* subject, const std::string& text) {
  findings_.push_back({subject, Verdict::kOk, text, ""});
}

void DoctorReport::Warn(const char* subject, const std::string& text, const std::string& advice) {
  findings_.push_back({subject, Verdict::kWarning, text, advice});
}

void DoctorReport::Problem(ExitCode code, const char* subject, const std::string& text,
                           const std::string& advice) {
  findings_.push_back({subject, Verdict::kProblem, text, advice});
  if (code_ == kExitOk || code == kExitUnavailable) code_ = code;
}

std::string DoctorReport::AsText() const {
  std::string text;
  for (const Finding& finding : findings_) {
    absl::StrAppendFormat(&text, "%-8s %-10s %s\n", Name(finding.verdict), finding.subject, finding.text);
    if (!finding.advice.empty()) absl::StrAppendFormat(&text, "%-8s %-10s -> %s\n", "", "", finding.advice);
  }
  return text;
}

std::string DoctorReport::AsJson() const {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const Finding& finding : findings_) {
    findings.push_back({{"subject", finding.subject},
                        {"verdict", Name(finding.verdict)},
                        {"text", finding.text},
                        {"advice", finding.advice}});
  }
  return nlohmann::ordered_json{{"works", code_ == kExitOk}, {"findings", findings}}.dump(2) + "\n";
}

}  // namespace weir
