#include "pytorch_plugin/native_watch.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/op_trace.h"
#include "pytorch_plugin/refuse.h"
#include "pytorch_plugin/thread_state.h"

namespace weir::plugin {
namespace {

using namespace c10::cuda::CUDACachingAllocator;

struct Peaks {
  int64_t allocated = 0, reserved = 0;
};

const WeirTrace* tracer = nullptr;  // set once, before anything is watched
std::mutex mutex;                   // taken under the allocator's lock; only the trace's comes after it
std::vector<Peaks> peaks;           // guarded by mutex; by device

// A block that the tracker is told of is counted after it, or was before: the next reading has it.
void ReadPeaks(c10::DeviceIndex device) {
  const auto stats = get()->getDeviceStats(device);
  const int64_t allocated = stats.allocated_bytes[0].peak, reserved = stats.reserved_bytes[0].peak;
  std::lock_guard<std::mutex> lock(mutex);
  Peaks& most = peaks[static_cast<size_t>(device)];
  if (allocated <= most.allocated && reserved <= most.reserved) return;
  most = {std::max(allocated, most.allocated), std::max(reserved, most.reserved)};
  tracer->peaks(device, static_cast<uint64_t>(most.allocated), static_cast<uint64_t>(most.reserved));
}

void OnEntry(const TraceEntry& entry) {
  if (InForkedChild()) return;
  auto* address = reinterpret_cast<void*>(entry.addr_);  // NOLINT(performance-no-int-to-ptr)
  switch (entry.action_) {
    case TraceEntry::ALLOC:
      tracer->allocated(entry.device_, address, entry.size_, entry.stream_);
      break;
    case TraceEntry::FREE_REQUESTED:
      tracer->freed(address);
      break;
    case TraceEntry::OOM:
      tracer->refused(entry.device_, entry.size_);
      break;
    default:
      break;
  }
  ReadPeaks(entry.device_);
}

void ReadPeaksAtExit() {
  if (InForkedChild()) return;
  for (size_t device = 0; device < peaks.size(); ++device) ReadPeaks(static_cast<c10::DeviceIndex>(device));
}

}  // namespace

bool WatchesNative() {
  tracer = weir_trace();
  return tracer != nullptr && tracer->of_native != 0;
}

bool WatchNative() {
  int devices = 0;
  WeirError error;
  // Not c10's count: this runs while that is being made.
  if (cudaGetDeviceCount(&devices) != cudaSuccess || weir_init(devices, &error) != WEIR_OK) {
    RefuseJobIfRequired(devices == 0 ? "the number of devices cannot be read" : error.text);
    return false;
  }
  peaks.resize(static_cast<size_t>(devices));
  std::atexit(&ReadPeaksAtExit);  // before weir_exit, which was registered earlier, ends the trace
  get()->init(devices);  // does nothing when torch does it again; before it there is nothing to attach to
  get()->attachAllocatorTraceTracker(&OnEntry);
  RegisterOpTrace();
  EnableOpTrace();
  return true;
}

}  // namespace weir::plugin
