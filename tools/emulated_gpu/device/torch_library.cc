#include "tools/emulated_gpu/device/torch_library.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/skipped_host.h"
#include "tools/emulated_gpu/device/timing.h"
#include "tools/emulated_gpu/device/torch_abi.h"
#include "tools/emulated_gpu/device/value_reads.h"

namespace weir::emulated {
namespace {

void CountLaunch() { Counted().launches.fetch_add(1, std::memory_order_relaxed); }
void ReportText(const char* text) { Report("%s", text); }
void CountReads(int what) {
  what == WEIR_EMULATED_WILL_COMPUTE ? ReadsStopCounting() : ReadsCountAgain(what == WEIR_EMULATED_COMPUTED);
}

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

// Calls what the library of the torch in this process exports as `entry`. False when torch is not there yet.
bool Call(const char* entry) {
  const std::string torch = TorchVersion();
  if (torch.empty()) return false;
  const std::string path = FolderOfThisLibrary() + "libweir_emulated_kernels_" + torch + ".so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    Note("no CPU kernels for torch %s: %s", torch.c_str(), dlerror());
    return true;
  }
  const auto install = reinterpret_cast<WeirEmulatedInstall>(dlsym(library, entry));
  static const WeirEmulatedHost host = {8,
                                        ObservesOps() ? 1 : 0,
                                        Settings().kernels == Kernels::kCpu ? 1 : 0,
                                        CountLaunch,
                                        SetOpOnCpu,
                                        ReportText,
                                        RunOpNow,
                                        BeginOp,
                                        EndOp,
                                        ChargeOp,
                                        AreKnown,
                                        OpComputed,
                                        CountReads,
                                        SettleStream,
                                        SkipHostBytes,
                                        ZeroHostBytes,
                                        AreHostBytesSkipped,
                                        EndStep};
  if (install == nullptr || install(&host) != 0) Note("%s: could not be installed", path.c_str());
  return true;
}

}  // namespace

void LoadTorchLibrary() {
  static std::mutex mutex;
  static bool done = false;
  std::lock_guard<std::mutex> lock(mutex);
  if (!done) done = Call("weir_emulated_install");
}

}  // namespace weir::emulated

extern "C" __attribute__((visibility("default"))) void weir_emulated_torch_imported(void) {
  using namespace weir::emulated;
  if (Settings().kernels == Kernels::kNone) Call("weir_emulated_import");
}
