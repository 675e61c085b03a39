// The only dlopen of the driver. One line per symbol; a missing one makes OpenDriver fail by name.
#include <cuda.h>
#include <dlfcn.h>

#include <cstring>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/host_work.h"
#include "allocator/cuda/cuda_status.h"
#include "allocator/cuda/driver.h"
#include "allocator/cuda/emulated_clock.h"
#include "allocator/cuda/emulated_host.h"

namespace weir {
namespace {

// Name in the driver (with the version suffix that cuda.h gives it) and type, from the header.
#define WEIR_QUOTE_(x) #x
#define WEIR_QUOTE(x) WEIR_QUOTE_(x)
#define WEIR_DRIVER_CALLS(X)           \
  X(cuInit)                            \
  X(cuGetErrorString)                  \
  X(cuDeviceGet)                       \
  X(cuDeviceGetAttribute)              \
  X(cuDevicePrimaryCtxRetain)          \
  X(cuCtxPushCurrent)                  \
  X(cuCtxPopCurrent)                   \
  X(cuCtxSynchronize)                  \
  X(cuThreadExchangeStreamCaptureMode) \
  X(cuMemGetInfo)                      \
  X(cuMemAddressReserve)               \
  X(cuMemCreate)                       \
  X(cuMemRelease)                      \
  X(cuMemMap)                          \
  X(cuMemSetAccess)                    \
  X(cuMemUnmap)                        \
  X(cuMemHostAlloc)                    \
  X(cuMemFreeHost)                     \
  X(cuMemcpyDtoHAsync)                 \
  X(cuMemcpyHtoDAsync)                 \
  X(cuEventCreate)                     \
  X(cuEventDestroy)                    \
  X(cuEventRecord)                     \
  X(cuEventQuery)                      \
  X(cuEventSynchronize)                \
  X(cuStreamWaitEvent)

struct Table {
#define WEIR_FIELD(name) decltype(&::name) name##_ = nullptr;
  WEIR_DRIVER_CALLS(WEIR_FIELD)
#undef WEIR_FIELD
};

CUstream AsStream(Stream stream) { return reinterpret_cast<CUstream>(stream.handle()); }
CUevent AsEvent(Event event) { return static_cast<CUevent>(event.handle); }

CUmemAllocationProp DeviceProp(DeviceIndex device) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device.value;
  return prop;
}

class DlopenDriver final : public Driver {
 public:
  explicit DlopenDriver(const Table& table) : table_(table) {}

#define WEIR_CALL(name, ...) Check((CountCall(), table_.name##_(__VA_ARGS__)), WEIR_QUOTE(name))

  absl::StatusOr<DeviceMemory> MemoryInfo(DeviceIndex device) override {
    ScopedContext context(*this, device);
    size_t free = 0, total = 0;
    absl::Status status = WEIR_CALL(cuMemGetInfo, &free, &total);
    if (!status.ok()) return status;
    return DeviceMemory{Bytes(free), Bytes(total)};
  }

  absl::StatusOr<bool> SupportsVirtualMemory(DeviceIndex device) override {
    int yes = 0;
    CUdevice handle = 0;
    absl::Status status = WEIR_CALL(cuDeviceGet, &handle, device.value);
    if (status.ok()) {
      status = WEIR_CALL(cuDeviceGetAttribute, &yes, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                         handle);
    }
    if (!status.ok()) return status;
    return yes != 0;
  }

  absl::Status EnterContext(DeviceIndex device) override {
    CUcontext context = nullptr;
    absl::Status status = PrimaryContext(device, &context);
    if (status.ok()) status = WEIR_CALL(cuCtxPushCurrent, context);
    if (!status.ok()) return status;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    status = WEIR_CALL(cuThreadExchangeStreamCaptureMode, &mode);
    saved_mode_ = mode;
    return absl::OkStatus();
  }

  void LeaveContext() override {
    CUstreamCaptureMode mode = saved_mode_;
    (void)WEIR_CALL(cuThreadExchangeStreamCaptureMode, &mode);
    CUcontext context = nullptr;
    (void)WEIR_CALL(cuCtxPopCurrent, &context);
  }

  absl::Status SynchronizeContext() override { return WEIR_CALL(cuCtxSynchronize); }

  absl::StatusOr<DeviceAddr> ReserveAddresses(Bytes size) override {
    CUdeviceptr at = 0;
    absl::Status status = WEIR_CALL(cuMemAddressReserve, &at, size.count(), kPageBytes.count(), 0, 0);
    if (!status.ok()) return status;
    return DeviceAddr(at);
  }

  absl::StatusOr<FrameHandle> CreateFrame(DeviceIndex device, Bytes size) override {
    CUmemAllocationProp prop = DeviceProp(device);
    CUmemGenericAllocationHandle handle = 0;
    absl::Status status = WEIR_CALL(cuMemCreate, &handle, size.count(), &prop, 0);
    if (!status.ok()) return status;
    return FrameHandle{handle};
  }

  absl::Status ReleaseFrame(FrameHandle frame) override { return WEIR_CALL(cuMemRelease, frame.value); }

  absl::Status Map(DeviceAddr at, Bytes size, FrameHandle frame) override {
    return WEIR_CALL(cuMemMap, at.value(), size.count(), 0, frame.value, 0);
  }

  absl::Status SetAccess(absl::Span<const DeviceIndex> devices, DeviceAddr at, Bytes size) override {
    absl::InlinedVector<CUmemAccessDesc, 8> access;
    for (DeviceIndex device : devices) {
      access.push_back(
          {.location = DeviceProp(device).location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    }
    return WEIR_CALL(cuMemSetAccess, at.value(), size.count(), access.data(), access.size());
  }

  absl::Status Unmap(DeviceAddr at, Bytes size) override {
    return WEIR_CALL(cuMemUnmap, at.value(), size.count());
  }

  absl::StatusOr<void*> HostAlloc(Bytes size) override {
    void* memory = nullptr;
    absl::Status status = WEIR_CALL(cuMemHostAlloc, &memory, size.count(), CU_MEMHOSTALLOC_PORTABLE);
    if (!status.ok()) return status;
    return memory;
  }

  absl::Status HostFree(void* memory) override { return WEIR_CALL(cuMemFreeHost, memory); }

  absl::Status CopyToHost(void* to, DeviceAddr from, Bytes size, Stream stream) override {
    return WEIR_CALL(cuMemcpyDtoHAsync, to, from.value(), size.count(), AsStream(stream));
  }

  absl::Status CopyToDevice(DeviceAddr to, const void* from, Bytes size, Stream stream) override {
    return WEIR_CALL(cuMemcpyHtoDAsync, to.value(), from, size.count(), AsStream(stream));
  }

  absl::StatusOr<Event> CreateEvent() override {
    CUevent event = nullptr;
    absl::Status status = WEIR_CALL(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    if (!status.ok()) return status;
    return Event{event};
  }

  absl::Status DestroyEvent(Event event) override { return WEIR_CALL(cuEventDestroy, AsEvent(event)); }

  absl::Status RecordEvent(Event event, Stream stream) override {
    return WEIR_CALL(cuEventRecord, AsEvent(event), AsStream(stream));
  }

  absl::StatusOr<bool> QueryEvent(Event event) override {
    CountCall();
    CUresult result = table_.cuEventQuery_(AsEvent(event));
    if (result == CUDA_SUCCESS) return true;
    if (result == CUDA_ERROR_NOT_READY) return false;
    return Check(result, "cuEventQuery");
  }

  absl::Status SynchronizeEvent(Event event) override {
    return WEIR_CALL(cuEventSynchronize, AsEvent(event));
  }

  absl::Status WaitEvent(Stream stream, Event event) override {
    return WEIR_CALL(cuStreamWaitEvent, AsStream(stream), AsEvent(event), 0);
  }

 private:
  absl::Status Check(CUresult result, const char* call) {
    if (result == CUDA_SUCCESS) return absl::OkStatus();
    const char* words = nullptr;
    (void)table_.cuGetErrorString_(result, &words);
    return CudaStatus(result, call, words);
  }

  // The primary context is torch's; retaining it again only counts a reference, kept for the process's life.
  absl::Status PrimaryContext(DeviceIndex device, CUcontext* context) {
    static constexpr int kMaxDevices = 64;
    if (device.value < 0 || device.value >= kMaxDevices)
      return absl::InvalidArgumentError("device ordinal out of range");
    std::atomic<CUcontext>& cached = contexts_[device.value];
    *context = cached.load(std::memory_order_acquire);
    if (*context != nullptr) return absl::OkStatus();
    CUdevice handle = 0;
    absl::Status status = WEIR_CALL(cuDeviceGet, &handle, device.value);
    if (status.ok()) status = WEIR_CALL(cuDevicePrimaryCtxRetain, context, handle);
    if (status.ok()) cached.store(*context, std::memory_order_release);
    return status;
  }

  const Table table_;
  std::atomic<CUcontext> contexts_[64] = {};
  static thread_local CUstreamCaptureMode saved_mode_;
};

thread_local CUstreamCaptureMode DlopenDriver::saved_mode_ = CU_STREAM_CAPTURE_MODE_GLOBAL;

EmulatedNow emulated_clock = nullptr;           // set once, by Open()
uint64_t (*emulated_host_ram)(void) = nullptr;  // set once, by Open()

absl::StatusOr<Driver*> Open() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(absl::StrCat("no CUDA driver: ", dlerror()));
  Table table;
#define WEIR_RESOLVE(name)                                                                          \
  table.name##_ = reinterpret_cast<decltype(&::name)>(dlsym(library, WEIR_QUOTE(name)));            \
  if (table.name##_ == nullptr) {                                                                   \
    return absl::FailedPreconditionError(absl::StrCat("the CUDA driver lacks ", WEIR_QUOTE(name))); \
  }
  WEIR_DRIVER_CALLS(WEIR_RESOLVE)
#undef WEIR_RESOLVE
  CUresult result = table.cuInit_(0);
  if (result != CUDA_SUCCESS) return CudaStatus(result, "cuInit", nullptr);
  emulated_clock = reinterpret_cast<EmulatedNow>(dlsym(library, "weir_emulated_now_ns"));
  host_work_listener = reinterpret_cast<HostWorkListener>(dlsym(library, "weir_emulated_charge"));
  emulated_host_ram = reinterpret_cast<uint64_t (*)(void)>(dlsym(library, "weir_emulated_host_ram"));
  return new DlopenDriver(table);
}

}  // namespace

absl::StatusOr<Driver*> OpenDriver() {
  static const absl::StatusOr<Driver*> driver = Open();
  return driver;
}

EmulatedNow EmulatedClock() { return emulated_clock; }

Bytes EmulatedHostRam() { return Bytes(emulated_host_ram == nullptr ? 0 : emulated_host_ram()); }

}  // namespace weir
