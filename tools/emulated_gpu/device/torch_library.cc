#include "tools/emulated_gpu/device/torch_library.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/timing.h"
#include "tools/emulated_gpu/device/torch_abi.h"

namespace weir::emulated {
namespace {

void CountLaunch() { Counted().launches.fetch_add(1, std::memory_order_relaxed); }
void ReportText(const char* text) { Report("%s", text); }

std::string FolderOfThisLibrary() {
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&FolderOfThisLibrary), &self) == 0) return "";
  const std::string path = self.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

// "2_15", or "" when torch is not in the process.
std::string TorchVersion() {
  if (dlopen("libtorch_cuda.so", RTLD_NOLOAD | RTLD_LAZY) == nullptr) return "";
  void* torch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  if (torch == nullptr) return "";
  using AbiVersion = uint64_t (*)();
  const auto version = reinterpret_cast<AbiVersion>(dlsym(torch, "aoti_torch_abi_version"));
  if (version == nullptr) return "unknown";
  const uint64_t number = version();  // major << 56 | minor << 48
  char text[16];
  std::snprintf(text, sizeof text, "%u_%u", static_cast<unsigned>(number >> 56),
                static_cast<unsigned>(number >> 48 & 0xff));
  return text;
}

bool ObservesOps() {
  return Settings().kernels == Kernels::kNone && (Settings().checks || Settings().timing);
}

// False when torch is not there yet.
bool Load() {
  const std::string torch = TorchVersion();
  if (torch.empty()) return false;
  const std::string path = FolderOfThisLibrary() + "libweir_emulated_kernels_" + torch + ".so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    Note("no CPU kernels for torch %s: %s", torch.c_str(), dlerror());
    return true;
  }
  const auto install = reinterpret_cast<WeirEmulatedInstall>(dlsym(library, "weir_emulated_install"));
  static const WeirEmulatedHost host = {6,
                                        ObservesOps() ? 1 : 0,
                                        Settings().kernels == Kernels::kCpu ? 1 : 0,
                                        CountLaunch,
                                        SetOpOnCpu,
                                        ReportText,
                                        RunOpNow,
                                        BeginOp,
                                        EndOp,
                                        ChargeOp,
                                        EndStep};
  if (install == nullptr || install(&host) != 0) Note("%s: could not be installed", path.c_str());
  return true;
}

}  // namespace

void LoadTorchLibrary() {
  static std::mutex mutex;
  static bool done = false;
  std::lock_guard<std::mutex> lock(mutex);
  if (!done) done = Load();
}

}  // namespace weir::emulated
