#include "pytorch_plugin/allocator_adapter.h"

#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/safeguards.h"
#include "pytorch_plugin/allocator_stats.h"
#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/foreign_blocks.h"
#include "pytorch_plugin/memory_pools.h"
#include "pytorch_plugin/memory_snapshot.h"
#include "pytorch_plugin/observer_switch.h"
#include "pytorch_plugin/op_guard.h"
#include "pytorch_plugin/op_trace.h"
#include "pytorch_plugin/refuse.h"
#include "pytorch_plugin/storage_flags.h"
#include "pytorch_plugin/thread_state.h"
#include "pytorch_plugin/watched_allocator.h"

namespace weir::plugin {
namespace {

using namespace c10::cuda::CUDACachingAllocator;
using c10::DataPtr;
using c10::DeviceIndex;
using c10::MempoolId_t;

constexpr uint64_t kOneExabyte = uint64_t{1} << 60;
constexpr uint8_t kPriority = 255;  // of c10::SetAllocator: over everything static

std::atomic<CUDAAllocator*> installed{nullptr};  // ours, as long as it is to be watched for a replacement

// Called before an OutOfMemoryError is thrown. Never destroyed.
struct Observers {
  std::mutex mutex;
  std::vector<OutOfMemoryObserver> oom;
  std::vector<AnyMinorAllocator::OomRejectionObserver>
      rejection;  // kept: Weir rejects nothing that would fit
};

Observers& AllObservers() {
  static auto* observers = new Observers;
  return *observers;
}

// Blocks that only a callback can free (buffers other processes have stopped using). True: something was
// freed.
bool RunFreeMemoryCallbacks() {
  bool freed = false;
  for (const std::string& name : c10::FreeCudaMemoryCallbacksRegistry()->Keys()) {
    freed |= c10::FreeCudaMemoryCallbacksRegistry()->Create(name)->Execute();
  }
  return freed;
}

[[noreturn]] void ThrowAllocationError(int device, uint64_t bytes, const WeirError& error) {
  TORCH_CHECK(error.code == WEIR_OUT_OF_MEMORY, error.text);
  const Usage usage = UsageOf(device);
  c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(bytes), usage.allocated, usage.reserved,
                                   c10::Device(c10::kCUDA, static_cast<DeviceIndex>(device)));
  std::vector<OutOfMemoryObserver> observers;
  {
    std::lock_guard<std::mutex> lock(AllObservers().mutex);
    observers = AllObservers().oom;
  }
  const Room room = RoomOf(device);
  for (const OutOfMemoryObserver& observer : observers) {
    observer(device, bytes, room.total, room.free);
  }
  TORCH_CHECK_WITH(OutOfMemoryError, false, error.text);
}

// The profiler and the CUDA sanitizer want to hear of every block; both are off as a rule.
void ReportAllocation(void* address, int64_t bytes, int device) {
  if (const c10::impl::PyInterpreter* trace = c10::impl::GPUTrace::get_trace();
      C10_UNLIKELY(trace != nullptr)) {
    (*trace)->trace_gpu_memory_allocation(c10::kCUDA, reinterpret_cast<uintptr_t>(address));
  }
  if (C10_UNLIKELY(c10::memoryProfilingEnabled())) ReportToProfiler(address, bytes, device);
}

void ReportFree(void* address) {
  if (const c10::impl::PyInterpreter* trace = c10::impl::GPUTrace::get_trace();
      C10_UNLIKELY(trace != nullptr)) {
    (*trace)->trace_gpu_memory_deallocation(c10::kCUDA, reinterpret_cast<uintptr_t>(address));
  }
  if (C10_UNLIKELY(c10::memoryProfilingEnabled())) ReportFreeToProfiler(address);
}

// The deleter of every block. A plain function: it is reached from any thread, at any time, for ever.
void Delete(void* address) { FreeBlock(address); }

DeviceIndex CurrentDevice() {
  DeviceIndex device = 0;
  C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
  return device;
}

void* StreamOfThread(DeviceIndex device) {
  if (Without(Safeguard::kAllocationOnStreamOfThread)) return nullptr;
  return c10::cuda::getCurrentCUDAStream(device).stream();
}

// Pool and default streams of torch have odd ids or 0; an external stream's id is its handle, which is even.
bool IsExternal(c10::cuda::CUDAStream stream) { return stream.id() != 0 && (stream.id() & 1) == 0; }

class WeirAllocator final : public WatchedAllocator {
 public:
  explicit WeirAllocator(CUDAAllocator* native) : native_(native) {}

  // ---- c10::Allocator
  DataPtr allocate(size_t bytes) override {
    const DeviceIndex device = CurrentDevice();
    void* address = nullptr;
    if (bytes != 0) address = AllocateBlock(device, bytes, StreamOfThread(device));
    return {address, address, &Delete, c10::Device(c10::kCUDA, device)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Delete; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    C10_CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice));
  }

  // ---- c10::DeviceAllocator
  bool initialized() override { return device_count_.load() > 0; }
  // Of one pool, at its end: its memory is the general heap's, and of another allocator's its free blocks are returned.
  void emptyCache(MempoolId_t id) override {
    const WatchedCall call(RecordContext::ALL);
    for (int device = 0; device < device_count_.load(); ++device) {
      ReturnForeign(device);
      if (id == MempoolId_t{0, 0}) weir_empty_cache(device);
    }
  }
  void recordStream(const DataPtr& pointer, c10::cuda::CUDAStream stream) override {
    if (pointer.get() == nullptr || pointer.get_deleter() != &Delete) return;
    if (Without(Safeguard::kRecordedStreamReachesCore)) return;
    weir_record_stream(pointer.get(), stream.stream(), IsExternal(stream));
    RecordForeign(pointer.get(), stream.stream());
  }
  DeviceStats getDeviceStats(DeviceIndex device) override { return StatsOf(device); }
  void resetAccumulatedStats(DeviceIndex device) override { weir_reset_accumulated_stats(device); }
  void resetPeakStats(DeviceIndex device) override { weir_reset_peak_stats(device); }
  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex device) override {
    const c10::cuda::CUDAGuard guard(device);
    size_t free = 0, total = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    weir_plugin_memory_info(device, &free, &total);  // where the runtime's call is not interposed
    return {free, total};
  }

  // ---- CUDAAllocator
  void init(int device_count) override {
    WeirError error;
    if (weir_init(device_count, &error) == WEIR_OK) {
      fractions_ = std::vector<std::atomic<double>>(static_cast<size_t>(device_count));
      for (std::atomic<double>& fraction : fractions_) fraction.store(1.0);
      device_count_.store(device_count);
      EnableOpTrace();
    } else {
      StandDown(device_count, error);
    }
  }
  void* raw_alloc(size_t bytes) override {
    if (bytes == 0) return nullptr;
    const DeviceIndex device = CurrentDevice();
    return AllocateBlock(device, bytes, StreamOfThread(device));
  }
  void* raw_alloc_with_stream(size_t bytes, cudaStream_t stream) override {
    return bytes == 0 ? nullptr : AllocateBlock(CurrentDevice(), bytes, stream);
  }
  void raw_delete(void* address) override { Delete(address); }
  double getMemoryFraction(DeviceIndex device) override { return fractions_.at(static_cast<size_t>(device)); }
  // The cap: it holds at once, and what is above it leaves.
  void setMemoryFraction(double fraction, DeviceIndex device) override {
    std::atomic<double>& of_device = fractions_.at(static_cast<size_t>(device));
    TORCH_CHECK_VALUE(fraction >= 0 && fraction <= 1, "invalid fraction ", fraction,
                      ": it is to be in [0, 1]");
    WeirError error;
    TORCH_CHECK(weir_set_fraction(device, fraction, &error) == WEIR_OK, error.text);
    of_device.store(fraction);
  }
  std::vector<StreamSegmentSize> getExpandableSegmentSizes(DeviceIndex) override { return {}; }
  void enable(bool value) override {
    if (!value) Refuse("caching_allocator_enable(False)");
  }
  bool isEnabled() const override { return true; }
  void cacheInfo(DeviceIndex device, size_t* largest) override { *largest = weir_largest_free(device); }
  void* getBaseAllocation(void* address, size_t* size) override {
    void* base = nullptr;
    uint64_t bytes = 0;
    TORCH_CHECK(weir_find_block(address, &base, &bytes) != 0 || FindForeign(address, &base, &bytes),
                "invalid device pointer: ", address);
    if (size != nullptr) *size = bytes;
    return base;
  }
  SnapshotInfo snapshot(MempoolId_t pool, bool include_traces) override {
    return TakeSnapshot(device_count_.load(), pool, include_traces);
  }
  void attachOutOfMemoryObserver(OutOfMemoryObserver observer) override {
    std::lock_guard<std::mutex> lock(AllObservers().mutex);
    AllObservers().oom.push_back(std::move(observer));
  }
  void attachOomRejectionObserver(OomRejectionObserver observer) override {
    std::lock_guard<std::mutex> lock(AllObservers().mutex);
    AllObservers().rejection.push_back(std::move(observer));
  }
  // Torch asks once for a pair and then launches kernels of `device` on memory of `peer`. That of the driver, of torch's
  // own allocator for one, is opened by the runtime; Weir's mapped frames are by Weir.
  void enablePeerAccess(DeviceIndex device, DeviceIndex peer) override {
    const c10::cuda::CUDAGuard guard(device);
    if (const cudaError_t result = cudaDeviceEnablePeerAccess(peer, 0); result != cudaSuccess) {
      if (result != cudaErrorPeerAccessAlreadyEnabled) C10_CUDA_CHECK(result);
      (void)cudaGetLastError();  // it was enabled: no error is left behind
    }
    WeirError error;
    TORCH_CHECK(weir_add_peer(peer, device, &error) == WEIR_OK, error.text);
  }
  // The peer copy works with and without peer access.
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                          cudaStream_t stream, bool) override {
    if (to_device == from_device) return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
    return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream);
  }
  std::string name() override { return "native"; }  // else PYTORCH_ALLOC_CONF=backend:native does not parse

  // ---- pools (memory_pools.h)
  void beginAllocateToPool(DeviceIndex device, MempoolId_t id,
                           std::function<bool(cudaStream_t)> filter) override {
    OpenPool(device, id, std::move(filter));
  }
  void endAllocateToPool(DeviceIndex device, MempoolId_t id) override { ClosePool(device, id); }
  void releasePool(DeviceIndex device, MempoolId_t id) override { ReleasePool(device, id); }
  int getPoolUseCount(DeviceIndex device, MempoolId_t id) override { return PoolUses(device, id); }
  void createOrIncrefPool(DeviceIndex device, MempoolId_t id,
                          std::shared_ptr<CUDAAllocator> source) override {
    CreateOrRetainPool(device, id, std::move(source));
  }
  void setUseOnOOM(DeviceIndex device, MempoolId_t id, bool use) override { SetUseOnOom(device, id, use); }
  void setNoSplit(DeviceIndex device, MempoolId_t id) override { SetBlocksApart(device, id); }

  // ---- graphs, IPC: refused by name. Delegated to the native allocator they would hold bytes outside the cap.
  bool checkPoolLiveAllocations(DeviceIndex, MempoolId_t, const std::unordered_set<void*>&) override {
    Refuse("CUDA graph trees (checkPoolLiveAllocations)");
  }
  ShareableHandle shareIpcHandle(void*) override { Refuse("sharing CUDA tensors between processes (IPC)"); }
  std::shared_ptr<void> getIpcDevPtr(std::string) override {
    Refuse("sharing CUDA tensors between processes (IPC)");
  }
  std::shared_ptr<AllocatorState> getCheckpointState(DeviceIndex, MempoolId_t) override {
    Refuse("CUDA graph trees (getCheckpointState)");
  }
  CheckpointDelta setCheckpointPoolState(DeviceIndex, std::shared_ptr<AllocatorState>) override {
    Refuse("CUDA graph trees (setCheckpointPoolState)");
  }
  DataPtr allocateWithAddress(size_t, void*) override { Refuse("allocateWithAddress"); }

 private:
  // The machine cannot do what Weir needs: torch's own allocator takes over before the first block.
  void StandDown(int device_count, const WeirError& error) {
    RefuseJobIfRequired(error.text);
    DisableObserver();
    AcceptReplacement();
    allocator.store(native_);
    c10::SetAllocator(c10::kCUDA, native_, kPriority);
    native_->init(device_count);
  }

  CUDAAllocator* const native_;
  std::atomic<int> device_count_{0};
  std::vector<std::atomic<double>> fractions_;  // by device; made by init
};

static_assert(!std::is_abstract_v<WeirAllocator>);

}  // namespace

void* AllocateBlock(int device, uint64_t bytes, void* stream) {
  ThrowIfOomPending();
  NoteUnobservedAllocation();
  NoteUnwatchedAllocation();
  TORCH_CHECK_WITH(OutOfMemoryError, bytes < kOneExabyte,
                   "CUDA out of memory. Tried to allocate more than 1EB memory.");
  WatchedCall call(RecordContext::STATE);
  WeirError error;
  void* address = AllocateFromPools(device, bytes, stream, &error);
  if (C10_UNLIKELY(address == nullptr)) {
    if (error.code == WEIR_OUT_OF_MEMORY) {
      const bool freed = RunFreeMemoryCallbacks();
      if (ReturnForeign(device) || freed) address = AllocateFromPools(device, bytes, stream, &error);
      if (address == nullptr) address = BorrowForeign(device, bytes, static_cast<cudaStream_t>(stream));
    }
    if (address == nullptr) {
      if (error.code == WEIR_OUT_OF_MEMORY) call.OutOfMemory(device, bytes, RoomOf(device).free, stream);
      ThrowAllocationError(device, bytes, error);
    }
  }
  BeginWatchIfWanted();
  ReportAllocation(address, static_cast<int64_t>(bytes), device);
  return address;
}

bool FreeBlock(void* address) noexcept {
  if (address == nullptr || InForkedChild()) return true;
  try {
    ReportFree(address);
  } catch (...) {  // a hook's failure is no reason to keep the block
  }
  const WatchedCall call(RecordContext::ALL);
  return weir_release(address) != 0 || FreeForeign(address);
}

bool InstallAllocator() {
  CUDAAllocator* native = allocator.load();
  if (native->initialized()) return false;
  AcceptDeleter(&Delete);
  auto* ours = new WeirAllocator(native);  // never destroyed: tensors are freed while the process exits
  allocator.store(ours);
  installed.store(ours);
  c10::SetAllocator(c10::kCUDA, ours, kPriority);
  return true;
}

void NoteReplacement() {
  CUDAAllocator* const ours = installed.load(std::memory_order_relaxed);
  if (C10_LIKELY(ours == nullptr || allocator.load(std::memory_order_relaxed) == ours)) return;
  if (installed.exchange(nullptr) == nullptr) return;  // another thread says it
  const std::string text = "the job has replaced Weir by another allocator (" + allocator.load()->name() +
                           "): its memory is under no cap and is not moved";
  RefuseJobIfRequired(text.c_str());
}

void AcceptReplacement() { installed.store(nullptr); }

bool PluggableIsCurrent() { return allocator.load()->name() == "pluggable"; }

}  // namespace weir::plugin
