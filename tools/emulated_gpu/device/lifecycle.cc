#include "tools/emulated_gpu/device/lifecycle.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/fault_points.h"
#include "tools/emulated_gpu/device/faults.h"
#include "tools/emulated_gpu/device/figures.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/streams.h"
#include "tools/emulated_gpu/device/timing.h"
#include "tools/emulated_gpu/device/value_reads.h"
#include "tools/emulated_gpu/device/vmm.h"

namespace weir::emulated {
namespace {

std::once_flag start_once;
std::atomic<bool> started{false};
std::atomic<Status> start_status{CUDA_ERROR_NOT_INITIALIZED};
std::atomic<Status> sticky{CUDA_SUCCESS};
pid_t owner = 0;

// The most that this process held of each device.
std::string Peaks() {
  std::string text;
  for (int device = 0; device < DeviceCount(); ++device)
    text += (device == 0 ? "" : ",") + std::to_string(PeakDeviceBytes(PhysicalDevice(device)));
  return text;
}

void PrintExitLine() {
  if (getpid() != owner) return;
  const Options& options = Settings();
  const Counters& counters = Counted();
  char unchecked[64] = "", faults[64] = "";
  if (counters.unchecked_launches != 0)
    std::snprintf(unchecked, sizeof unchecked, " unchecked_launches=%lu", counters.unchecked_launches.load());
  FaultsAtExit();
  TimingAtExit();
  ReadsAtExit();
  WriteFigures(/*ended=*/true);
  if (counters.faults != 0) std::snprintf(faults, sizeof faults, " faults=%lu", counters.faults.load());
  Note(
      "%s total_bytes=%zu peak_bytes=%s left=%zu streams, %zu events, %zu frames kernels=%s launches=%lu%s "
      "copies=%lu%s reports=%lu",
      options.profile->name.c_str(), options.vram_bytes, Peaks().c_str(), LiveStreams(), LiveEvents(),
      LiveFrames(), options.kernels == Kernels::kCpu ? "cpu" : "none", counters.launches.load(), unchecked,
      counters.copies.load(), faults, counters.reports.load());
  LeaveProcesses();
}

// Under its soname, so that torch finds it: without any NVML, torch's expandable segments call a null
// pointer.
void LoadNvmlDouble() {
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&LoadNvmlDouble), &self) == 0) return;
  const std::string path = self.dli_fname;
  dlopen((path.substr(0, path.rfind('/') + 1) + "libnvidia-ml.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
}

// A child that forked after the first use has no device, as with the real driver.
void AfterForkInChild() { sticky = CUDA_ERROR_NOT_INITIALIZED; }

void StartOnce() {
  const Options& options = Settings();
  if (!options.mistake.empty()) {
    Note("%s", options.mistake.c_str());
    start_status = CUDA_ERROR_NO_DEVICE;
    return;
  }
  if (*FaultsMistake() != '\0') {
    Note("%s", FaultsMistake());
    start_status = CUDA_ERROR_NO_DEVICE;
    return;
  }
  if (options.visible.empty()) {
    start_status = CUDA_ERROR_NO_DEVICE;
    return;
  }
  owner = getpid();
  std::fprintf(stderr, "weir: emulated GPU %s (%zu MiB), kernels %s: no real device is used\n",
               options.profile->name.c_str(), options.vram_bytes >> 20,
               options.kernels == Kernels::kCpu ? "cpu" : "none");
  pthread_atfork(nullptr, nullptr, AfterForkInChild);
  std::atexit(PrintExitLine);
  WriteFigures(/*ended=*/false);
  InstallFaultHandler();
  LoadNvmlDouble();
  start_status = CUDA_SUCCESS;
}

}  // namespace

Status Start() {
  std::call_once(start_once, StartOnce);
  started.store(start_status == CUDA_SUCCESS, std::memory_order_release);
  if (sticky != CUDA_SUCCESS) return sticky;
  return start_status;
}

Status Ready() {
  if (!started.load(std::memory_order_acquire)) return CUDA_ERROR_NOT_INITIALIZED;
  return sticky.load(std::memory_order_relaxed);
}

void SetSticky(Status error) { sticky = error; }

Status UsePrimary() {
  const Status status = started.load(std::memory_order_acquire) ? Ready() : Start();
  if (status != CUDA_SUCCESS) return status;
  if (Current() == nullptr) {
    ActivatePrimary(0);
    SetCurrent(PrimaryContext(0));
  }
  ChargeHost(Micros(Settings().profile->costs.call_us), Busy::kCalls);
  return CUDA_SUCCESS;
}

Status NeedContext() {
  const Status status = Ready();
  if (status != CUDA_SUCCESS) return status;
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  ChargeHost(Micros(Settings().profile->costs.call_us), Busy::kCalls);
  return CUDA_SUCCESS;
}

}  // namespace weir::emulated
