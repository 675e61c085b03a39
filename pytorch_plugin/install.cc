// Entry of the plugin: brings the core up, registers the observer and the list ops, puts the allocator in
// place.
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>
#include <sys/types.h>
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "allocator/base/safeguards.h"
#include "pytorch_plugin/allocator_adapter.h"
#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/list_ops.h"
#include "pytorch_plugin/loader/plugin_entry.h"
#include "pytorch_plugin/native_watch.h"
#include "pytorch_plugin/observer_switch.h"
#include "pytorch_plugin/op_guard.h"
#include "pytorch_plugin/op_trace.h"
#include "pytorch_plugin/python_hooks.h"
#include "pytorch_plugin/refuse.h"
#include "pytorch_plugin/storage_flags.h"
#include "pytorch_plugin/thread_state.h"
#include "pytorch_plugin/torch_version.h"

extern "C" uint64_t aoti_torch_abi_version();

namespace weir::plugin {
namespace {

const WeirHost host = {WEIR_CORE_ABI_VERSION, &StorageRetain, &StorageRelease, &StorageDeny,
                       &StorageAllow,         &ReleaseGil,    &RetakeGil,      &VetoOfEviction};

// Compared exactly: C++ layouts change with every minor of torch.
bool VersionMatches() {
  const uint64_t version = aoti_torch_abi_version();
  return static_cast<int>(version >> 56) == TORCH_VERSION_MAJOR &&
         static_cast<int>(version >> 48 & 0xff) == TORCH_VERSION_MINOR;
}

// What is told at the exit is of this process: a forked child would tell it again, and locks may be held there for ever (C131).
void ExitUnlessForked() {
  if (!InForkedChild()) weir_exit();
}

void WatchForksAndExit() {
  WatchForks();
  std::atexit(&ExitUnlessForked);
}

void Watch() {
  WatchForksAndExit();
  if (weir_wants_observer() != 0) {
    RegisterListOps();
    RegisterObserver();
    EnableObserver();
    InstallPythonHooks();
  }
  RegisterOpTrace();
}

// ---- the pluggable route: torch's CUDAPluggableAllocator keeps the books, the blocks are Weir's

std::atomic<bool> pluggable_is_native{false};  // the machine cannot do what Weir needs

void RecordStreamOf(void* address, cudaStream_t stream) { weir_record_stream(address, stream, 1); }

void EmptyAllCaches() {
  for (int device = 0; device < c10::cuda::device_count(); ++device) weir_empty_cache(device);
}

void* BaseAllocation(void* address, size_t* size) {
  void* base = nullptr;
  uint64_t bytes = 0;
  TORCH_CHECK(weir_find_block(address, &base, &bytes) != 0, "invalid device pointer: ", address);
  if (size != nullptr) *size = bytes;
  return base;
}

// At the first block: by now the job has put its CUDAPluggableAllocator in place. What it leaves out
// (record_stream above all) is filled in.
void StartPluggable() {
  AcceptReplacement();
  WeirError error;
  if (weir_init(c10::cuda::device_count(), &error) != WEIR_OK) {
    RefuseJobIfRequired(error.text);
    DisableObserver();
    pluggable_is_native.store(true);
    return;
  }
  EnableOpTrace();
  auto* current = c10::cuda::CUDACachingAllocator::get();
  AcceptDeleter(current->raw_deleter());
  if (auto* pluggable = dynamic_cast<torch::cuda::CUDAPluggableAllocator::CUDAPluggableAllocator*>(current)) {
    if (!Without(Safeguard::kRecordedStreamOfPluggable)) pluggable->set_record_stream_fn(&RecordStreamOf);
    pluggable->set_reset_fn(&EmptyAllCaches);
    pluggable->set_base_alloc_fn(&BaseAllocation);
  }
}

// Why Weir is not there, in the one line that is said about it.
int Refused(const std::string& why) {
  weir_log(0, (why + ": the job runs with torch's own allocator").c_str());
  return 1;
}

void* NativeMalloc(ssize_t size) {
  void* address = nullptr;
  C10_CUDA_CHECK(cudaMalloc(&address, static_cast<size_t>(size)));
  return address;
}

}  // namespace

void RefuseJobIfRequired(const char* reason) {
  weir_log(0, reason);
  const char* required = std::getenv("WEIR_REQUIRED");
  if (required != nullptr && std::strcmp(required, "1") == 0) _exit(WEIR_EXIT_UNAVAILABLE);
}

}  // namespace weir::plugin

// `mode`: WEIR_LOAD_*. 0: in place. Called once, by the loader.
extern "C" WEIR_API int weir_plugin_load(int mode) {
  using namespace weir::plugin;
  WeirError error;
  if (weir_start(&host, &error) != WEIR_OK) {
    std::fprintf(stderr, "weir: %s: the job runs with torch's own allocator\n", error.text);
    return 1;
  }
  if (!VersionMatches()) {
    return Refused("this plugin is for torch " C10_STRINGIZE(TORCH_VERSION_MAJOR) "." C10_STRINGIZE(
        TORCH_VERSION_MINOR) " and another torch is loaded");
  }
#ifdef WEIR_TORCH_NEVER_RUN
  weir_log(1, "this plugin was built for torch " C10_STRINGIZE(TORCH_VERSION_MAJOR) "." C10_STRINGIZE(
                  TORCH_VERSION_MINOR) " and has never run with it: its tests are those of other versions");
#endif
  try {
    const std::string current = c10::cuda::CUDACachingAllocator::get()->name();
    if (current == "cudaMallocAsync") {
      return Refused("PYTORCH_ALLOC_CONF names backend:cudaMallocAsync, which Weir cannot stand in for");
    }
    if (mode == WEIR_LOAD_AS_ALLOCATOR && WatchesNative()) {
      WatchForksAndExit();
      return WatchNative() ? 0 : 1;
    }
    if (mode == WEIR_LOAD_AS_ALLOCATOR && !PluggableIsCurrent() && !InstallAllocator()) {
      return Refused("CUDA is already in use: Weir has to be there before the first tensor");
    }
    Watch();
  } catch (const std::exception& failure) {
    return Refused(failure.what());
  }
  return 0;
}

extern "C" WEIR_API void* weir_plugin_malloc(ssize_t size, int device, void* stream) {
  using namespace weir::plugin;
  static std::once_flag once;
  std::call_once(once, &StartPluggable);
  if (size <= 0) return nullptr;
  if (pluggable_is_native.load(std::memory_order_relaxed)) return NativeMalloc(size);
  return AllocateBlock(device, static_cast<uint64_t>(size), stream);
}

extern "C" WEIR_API void weir_plugin_free(void* address, ssize_t, int, void*) {
  using namespace weir::plugin;
  if (!FreeBlock(address) && pluggable_is_native.load(std::memory_order_relaxed)) cudaFree(address);
}
