// The seam between Weir and the CUDA driver: every driver call of the core is a method here, and nothing else.
// `OpenDriver()` (driver_dlopen.cc) is the real one; tests/fakes/fake_driver.h is the one the unit tests use; on a
// machine without a GPU the emulated GPU stands behind the real one as `libcuda.so.1`.
//
// Contract of all methods:
//  - Any thread may call, with the device's primary context current (see ScopedContext) where a stream, an event or
//    a copy is involved.
//  - Addresses, sizes and frame sizes are multiples of kPageBytes for the virtual-memory calls.
//  - Statuses: RESOURCE_EXHAUSTED out of device or host memory; UNAVAILABLE not ready, or the context is gone (the
//    process is exiting); INVALID_ARGUMENT rejected arguments; INTERNAL anything else, with the driver's words.
//  - Only SynchronizeEvent, SynchronizeContext and HostAlloc/HostFree may take long; the rest are host-side calls
//    (microseconds: research/cuda-facts.md 1.1).
#ifndef WEIR_ALLOCATOR_CUDA_DRIVER_H_
#define WEIR_ALLOCATOR_CUDA_DRIVER_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "allocator/base/units.h"

namespace weir {

// A CUDA device ordinal.
struct DeviceIndex {
  int32_t value = 0;
  friend auto operator<=>(DeviceIndex, DeviceIndex) = default;
};

// One physical allocation handle of the driver (CUmemGenericAllocationHandle). Zero is none.
struct FrameHandle {
  uint64_t value = 0;
  friend bool operator==(FrameHandle, FrameHandle) = default;
};

// An event of the driver (CUevent). Null is none.
struct Event {
  void* handle = nullptr;
  friend bool operator==(Event, Event) = default;
};

struct DeviceMemory {
  Bytes free;  // as the driver sees it now, all processes
  Bytes total;
};

class Driver {
 public:
  virtual ~Driver() = default;

  // ---- devices and contexts
  virtual absl::StatusOr<DeviceMemory> MemoryInfo(DeviceIndex device) = 0;
  // False on vGPUs and in some containers (CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED).
  virtual absl::StatusOr<bool> SupportsVirtualMemory(DeviceIndex device) = 0;
  // Makes the primary context current on this thread and switches stream-capture interaction to relaxed (R13).
  virtual absl::Status EnterContext(DeviceIndex device) = 0;
  virtual void LeaveContext() = 0;
  // Waits for everything queued on the device.
  virtual absl::Status SynchronizeContext() = 0;

  // ---- address ranges and frames
  virtual absl::StatusOr<DeviceAddr> ReserveAddresses(Bytes size) = 0;
  virtual absl::StatusOr<FrameHandle> CreateFrame(DeviceIndex device, Bytes size) = 0;
  virtual absl::Status ReleaseFrame(FrameHandle frame) = 0;
  // Maps the whole of `frame` at `at`; no access yet.
  virtual absl::Status Map(DeviceAddr at, Bytes size, FrameHandle frame) = 0;
  // Read and write for each of `devices` over a fully mapped range (several frames may lie in it).
  virtual absl::Status SetAccess(absl::Span<const DeviceIndex> devices, DeviceAddr at, Bytes size) = 0;
  // The range consists of whole mappings. Does not wait for work that uses it: the caller has.
  virtual absl::Status Unmap(DeviceAddr at, Bytes size) = 0;

  // ---- pinned host memory
  virtual absl::StatusOr<void*> HostAlloc(Bytes size) = 0;
  virtual absl::Status HostFree(void* memory) = 0;

  // ---- copies and order; asynchronous, in stream order
  virtual absl::Status CopyToHost(void* to, DeviceAddr from, Bytes size, Stream stream) = 0;
  virtual absl::Status CopyToDevice(DeviceAddr to, const void* from, Bytes size, Stream stream) = 0;
  virtual absl::StatusOr<Event> CreateEvent() = 0;
  virtual absl::Status DestroyEvent(Event event) = 0;
  virtual absl::Status RecordEvent(Event event, Stream stream) = 0;
  // True when all work before the record has finished.
  virtual absl::StatusOr<bool> QueryEvent(Event event) = 0;
  virtual absl::Status SynchronizeEvent(Event event) = 0;
  virtual absl::Status WaitEvent(Stream stream, Event event) = 0;

  // Number of calls made so far, all methods (the exit line's driver_calls_steady is taken from it).
  uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

 protected:
  void CountCall() { calls_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> calls_{0};
};

// The device's primary context is current, in relaxed capture mode, while this lives. Errors show in the calls made
// inside it.
class ScopedContext {
 public:
  ScopedContext(Driver& driver, DeviceIndex device)
      : driver_(driver), entered_(driver.EnterContext(device).ok()) {}
  ~ScopedContext() {
    if (entered_) driver_.LeaveContext();
  }
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

 private:
  Driver& driver_;
  bool entered_;
};

// The driver of this process: dlopen("libcuda.so.1"). NOT_FOUND without one; FAILED_PRECONDITION naming the symbol
// when the library lacks one that Weir needs. Lives for ever.
absl::StatusOr<Driver*> OpenDriver();

}  // namespace weir

#endif  // WEIR_ALLOCATOR_CUDA_DRIVER_H_
