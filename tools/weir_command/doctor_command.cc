#include "tools/weir_command/doctor_command.h"

#include <stdlib.h>
#include <sys/resource.h>

#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/size_text.h"
#include "offload/host_memory.h"
#include "tools/weir_command/doctor_job.h"
#include "tools/weir_command/doctor_report.h"
#include "tools/weir_command/doctor_settings.h"
#include "tools/weir_command/doctor_way.h"
#include "tools/weir_command/failure.h"
#include "tools/weir_command/job_command.h"
#include "tools/weir_command/real_gpu.h"

namespace weir {
namespace {

void LookAtParts(const Options& options, const std::string& version, const Places& places,
                 DoctorReport& report) {
  report.Ok("weir",
            absl::StrCat(version, ", with plugins for torch ", absl::StrJoin(places.TorchVersions(), ", "),
                         ", in ", places.Preload().parent_path().string()));
  try {
    places.RequireParts(options);
    report.Ok("parts", "all libraries of Weir are there");
  } catch (const Failure& failure) {
    report.Problem(kExitUnavailable, "parts", failure.what(), "tools/setup");
  }
}

void LookAtDevice(size_t ordinal, const DeviceFound& device, DoctorReport& report) {
  const std::string text = absl::StrCat(
      "device ", ordinal, ": ", device.name.empty() ? "without a name" : device.name, ", ",
      FormatBytes(device.total), device.capability.empty() ? "" : absl::StrCat(", sm_", device.capability),
      device.has_virtual_memory ? ", maps virtual memory" : "");
  if (!device.has_virtual_memory) {
    report.Problem(kExitUnavailable, "gpu", absl::StrCat(text, ", has no virtual memory management"),
                   "a vGPU profile or container that offers it (cuMemMap), or another card: Weir cannot work "
                   "without");
  } else if (device.is_prohibited) {
    report.Problem(kExitUnavailable, "gpu", absl::StrCat(text, ", in compute mode Prohibited"),
                   "nvidia-smi -c DEFAULT");
  } else {
    report.Ok("gpu", text);
  }
}

// What the driver serves, for the torch that comes after; nothing where there is no driver.
DriverFound LookAtGpu(const Options& options, const Places& places, DoctorReport& report) {
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
    return driver;
  }
  report.Ok("driver",
            absl::StrCat(options.gpu.emulated ? "the emulated GPU" : "NVIDIA",
                         driver.cuda.empty() ? "" : absl::StrCat(", serves CUDA up to ", driver.cuda)));
  std::vector<Bytes> totals;
  for (size_t i = 0; i < driver.devices.size(); ++i) {
    LookAtDevice(i, driver.devices[i], report);
    totals.push_back(driver.devices[i].total);
  }
  LookAtCaps(options, totals, report);
  return driver;
}

// The major version of CUDA that a torch "2.15.0+cu132" is built for; 0 if it does not say.
int CudaMajorOf(const std::string& torch_version) {
  const size_t at = torch_version.find("+cu");
  int number = 0;
  if (at == std::string::npos || !absl::SimpleAtoi(torch_version.substr(at + 3), &number)) return 0;
  return number / 10;
}

// A driver serves every CUDA of its own major version and older ones, but no newer one.
void LookAtCudaOf(const TorchFound& torch, const DriverFound& driver, DoctorReport& report) {
  int served = 0;
  const int needed = CudaMajorOf(torch.version);
  const std::string major = driver.cuda.substr(0, driver.cuda.find('.'));
  if (needed == 0 || !absl::SimpleAtoi(major, &served) || served >= needed) return;
  report.Problem(
      kExitUnavailable, "driver",
      absl::StrCat("serves CUDA up to ", driver.cuda, ", and torch ", torch.version, " needs ", needed, ".0"),
      absl::StrCat("a newer driver, or a torch that is built for CUDA ", served));
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

void LookAtTorch(const std::string& python, const DriverFound& driver, const Places& places,
                 DoctorReport& report) {
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
  LookAtCudaOf(*torch, driver, report);
  if (minor == "2.11") {
    report.Warn("leaving", WhatMayLeave(minor), "torch 2.13 and later have no such limit");
  } else {
    report.Ok("leaving", WhatMayLeave(minor));
  }
  report.Ok("refused", "an error names them: CUDA graphs, and CUDA tensors shared between processes");
}

// Pinned memory as the RAM tier.
void LookAtRam(const Options& options, DoctorReport& report) {
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

// The driver reserves addresses for all of the card and of the RAM tier, and more.
void LookAtAddressSpace(DoctorReport& report) {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return;
  report.Warn("addresses", absl::StrCat("limited to ", FormatBytes(Bytes(limit.rlim_cur)), " (ulimit -v)"),
              "ulimit -v unlimited: CUDA and Weir reserve far more than they use");
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
  DoctorReport report;
  const Options options = LookAtOptions(texts, report);
  LookAtStaleSettings(texts, options, report);
  LookAtParts(options, request.version, places, report);
  const DriverFound driver = LookAtGpu(options, places, report);
  const std::string python = PythonOf(request);
  LookAtTorch(python, driver, places, report);
  if (!request.job.empty()) LookAtJob(request.job, report);
  if (!options.disable) LookAtWay(python, texts, request.version, places, report);
  LookAtRam(options, report);
  LookAtAddressSpace(report);
  request.output.Write(request.output.json ? report.AsJson() : report.AsText());
  return report.code();
}

}  // namespace weir
