#include "tools/weir_command/doctor_command.h"

#include <stdlib.h>
#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/option_table.h"
#include "allocator/base/size_text.h"
#include "offload/host_memory.h"
#include "tools/weir_command/failure.h"
#include "tools/weir_command/job_command.h"
#include "tools/weir_command/real_gpu.h"
#include "tools/weir_command/run_command.h"

namespace weir {
namespace {

class Report {
 public:
  void Ok(const char* subject, const std::string& text) { Add({subject, Verdict::kOk, text, ""}); }
  void Warn(const char* subject, const std::string& text, const std::string& advice) {
    Add({subject, Verdict::kWarning, text, advice});
  }
  void Problem(ExitCode code, const char* subject, const std::string& text, const std::string& advice) {
    Add({subject, Verdict::kProblem, text, advice});
    if (code_ == kExitOk || code == kExitUnavailable) code_ = code;
  }
  const std::vector<Finding>& findings() const { return findings_; }
  ExitCode code() const { return code_; }

 private:
  void Add(Finding finding) { findings_.push_back(std::move(finding)); }

  std::vector<Finding> findings_;
  ExitCode code_ = kExitOk;
};

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

// Every option that is set, with its verdict. The options in force, defaults for those that are wrong.
Options LookAtOptions(const OptionTexts& texts, Report& report) {
  for (const UnknownOption& unknown : FindUnknownOptions(texts)) {
    report.Warn("options", unknown.Message(),
                absl::StrCat("unset ", unknown.name, "; `weir run` refuses it"));
  }
  OptionTexts good;
  std::vector<std::string> set;
  for (const OptionRow& row : OptionTable()) {
    const auto found = texts.find(row.name);
    if (row.internal || found == texts.end() || found->second.empty()) continue;
    const absl::StatusOr<Options> read = ParseOptions({{found->first, found->second}});
    if (!read.ok()) {
      report.Problem(kExitUsage, "options", std::string(read.status().message()),
                     absl::StrCat("`weir config` shows what ", row.name, " accepts"));
      continue;
    }
    good.insert(*found);
    set.push_back(absl::StrCat(row.name, "=", found->second));
  }
  report.Ok("options", set.empty() ? "none is set" : absl::StrJoin(set, ", "));
  Options options = *ParseOptions(good);
  if (options.disable) report.Warn("options", "WEIR_DISABLE=1: jobs run without Weir", "unset WEIR_DISABLE");
  return options;
}

void LookAtParts(const Options& options, const Places& places, Report& report) {
  try {
    places.RequireParts(options);
    report.Ok("parts", "all libraries of Weir are there");
  } catch (const Failure& failure) {
    report.Problem(kExitUnavailable, "parts", failure.what(), "tools/setup");
  }
}

void LookAtDevices(const DriverFound& driver, Report& report) {
  for (size_t i = 0; i < driver.devices.size(); ++i) {
    const DeviceFound& device = driver.devices[i];
    const std::string text =
        absl::StrCat("device ", i, ": ", device.name.empty() ? "without a name" : device.name, ", ",
                     FormatBytes(device.total), device.has_virtual_memory ? ", maps virtual memory" : "");
    if (device.has_virtual_memory) {
      report.Ok("gpu", text);
    } else {
      report.Problem(
          kExitUnavailable, "gpu", absl::StrCat(text, ", has no virtual memory management"),
          "a vGPU profile or container that offers it (cuMemMap), or another card: Weir cannot work without");
    }
  }
}

void LookAtGpu(const Options& options, const Places& places, Report& report) {
  DriverFound driver;
  if (options.gpu.emulated) {
    setenv("WEIR_GPU", absl::StrCat("emulated:", options.gpu.profile).c_str(), 1);
    driver = LookAtDriver(places.EmulatedDriver());
  } else {
    driver = LookAtDriver("libcuda.so.1");
  }
  if (!driver.problem.empty()) {
    report.Problem(
        kExitUnavailable, "driver", driver.problem,
        options.gpu.emulated ? "tools/setup" : "to try a job without a GPU: weir run --gpu emulated");
    return;
  }
  report.Ok("driver",
            absl::StrCat(options.gpu.emulated ? "the emulated GPU" : "NVIDIA",
                         driver.cuda.empty() ? "" : absl::StrCat(", serves CUDA up to ", driver.cuda)));
  LookAtDevices(driver, report);
}

std::string MinorOf(const std::string& version) {
  const size_t dot = version.find('.');
  return dot == std::string::npos ? version
                                  : version.substr(0, version.find_first_not_of("0123456789", dot + 1));
}

// The interpreter that was named, else the first one of PATH. Empty: none.
std::string PythonOf(const DoctorRequest& request) {
  if (!request.python.empty()) return FindCommand(request.python).string();
  for (const char* name : {"python", "python3"}) {
    try {
      return FindCommand(name).string();
    } catch (const Failure&) {
    }
  }
  return "";
}

void LookAtTorch(const DoctorRequest& request, const Places& places, Report& report) {
  const std::string python = PythonOf(request);
  if (python.empty()) {
    report.Warn("python", "none in PATH", "name the one of your job: weir doctor -- /path/to/python");
    return;
  }
  report.Ok("python", python);
  const std::vector<std::string> versions = places.TorchVersions();
  const std::string works = absl::StrCat("a CUDA build of torch ", absl::StrJoin(versions, ", "));
  const std::optional<TorchFound> torch = FindTorchOf(python);
  if (!torch) {
    report.Problem(kExitUnavailable, "torch", "this Python has none",
                   "name the Python of your job, or install " + works);
    return;
  }
  const std::string minor = MinorOf(torch->version);
  try {
    RequireWorkingTorch(torch, versions);
  } catch (const Failure& failure) {
    report.Problem(kExitUnavailable, "torch", failure.what(), "install " + works);
    return;
  }
  report.Ok("torch", absl::StrCat(torch->version, ", a CUDA build, and Weir's plugin for it is there"));
  if (minor == "2.11") {
    report.Warn("leaving", WhatMayLeave(minor), "torch 2.13 and later have no such limit");
  } else {
    report.Ok("leaving", WhatMayLeave(minor));
  }
}

void LookAtOtherAllocators(Report& report) {
  try {
    RefuseOtherAllocators();
  } catch (const Failure& failure) {
    report.Problem(kExitUsage, "allocator", failure.what(), "unset it");
  }
}

// Pinned memory as the RAM tier.
void LookAtRam(const Options& options, Report& report) {
  const absl::StatusOr<HostMemory> memory = AvailableHostMemory();
  if (!memory.ok()) {
    report.Problem(kExitUnavailable, "ram", std::string(memory.status().message()), "mount /proc");
    return;
  }
  const int ranks = LocalRanks();
  const Bytes budget = options.ram.bytes.value_or(DefaultRamBudget(memory->available, ranks));
  const std::string text = absl::StrCat(
      FormatBytes(budget),
      options.ram.per_node            ? " (WEIR_RAM, of all Weir processes of this user)"
      : options.ram.bytes.has_value() ? " (WEIR_RAM)"
                                      : " (half of what is available",
      !options.ram.bytes.has_value() && ranks > 1 ? absl::StrCat(" for ", ranks, " processes") : "",
      options.ram.bytes.has_value() ? "" : ")", " of ", FormatBytes(memory->available),
      " available, limited by ", memory->limited_by);
  if (budget > memory->available) {
    report.Warn("ram", text,
                "a smaller WEIR_RAM: pinned memory that is not there ends in an out-of-memory error");
  } else {
    report.Ok("ram", text);
  }
  if (options.gpu.emulated) return;  // its pinned memory is ordinary memory
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) {
    report.Ok("memlock", "unlimited");
  } else if (Bytes(limit.rlim_cur) >= budget) {
    report.Ok("memlock", absl::StrCat(FormatBytes(Bytes(limit.rlim_cur)), ", enough for the RAM tier"));
  } else {
    report.Warn("memlock",
                absl::StrCat(FormatBytes(Bytes(limit.rlim_cur)), ", less than the RAM tier may pin"),
                "where pinning fails: ulimit -l unlimited (docker run --ulimit memlock=-1)");
  }
}

std::string AsText(const Report& report) {
  std::string text;
  for (const Finding& finding : report.findings()) {
    absl::StrAppendFormat(&text, "%-8s %-10s %s\n", Name(finding.verdict), finding.subject, finding.text);
    if (!finding.advice.empty()) absl::StrAppendFormat(&text, "%-8s %-10s -> %s\n", "", "", finding.advice);
  }
  return text;
}

std::string AsJson(const Report& report) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const Finding& finding : report.findings()) {
    findings.push_back({{"subject", finding.subject},
                        {"verdict", Name(finding.verdict)},
                        {"text", finding.text},
                        {"advice", finding.advice}});
  }
  return nlohmann::ordered_json{{"works", report.code() == kExitOk}, {"findings", findings}}.dump(2) + "\n";
}

}  // namespace

std::string WhatMayLeave(const std::string& minor) {
  if (minor == "2.11") {
    return "tensors that only aten operators used may leave the card; in a job with compiled code "
           "(torch.compile), custom "
           "operators or extensions that link torch or CUDA nothing leaves";
  }
  return "every tensor that an operator was seen to use may leave the card; those given to compiled code and "
         "custom kernels "
         "stay";
}

int Doctor(const DoctorRequest& request, const Places& places) {
  OptionTexts texts = ReadEnvironment();
  if (!request.gpu.empty()) texts["WEIR_GPU"] = request.gpu;
  Report report;
  const Options options = LookAtOptions(texts, report);
  LookAtParts(options, places, report);
  LookAtGpu(options, places, report);
  LookAtTorch(request, places, report);
  LookAtOtherAllocators(report);
  LookAtRam(options, report);
  request.output.Write(request.output.json ? AsJson(report) : AsText(report));
  return report.code();
}

}  // namespace weir
