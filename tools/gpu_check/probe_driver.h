// Part of probe.cc: the driver by dlopen, what a step says to the parent, and the calls that every step makes.
#ifndef WEIR_GPU_CHECK_PROBE_DRIVER_H_
#define WEIR_GPU_CHECK_PROBE_DRIVER_H_

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// The driver's binary interface, as cuda.h declares it (checked against it where the build has it).
using Ptr = unsigned long long;
using Frame = unsigned long long;
using Stream = void*;
using Event = void*;
struct Location {
  int type, id;
};
constexpr int kDevice = 1, kHostNuma = 3, kReadWrite = 3, kFileDescriptor = 1, kNonBlocking = 1,
              kNoTiming = 2;
constexpr int kRelaxed = 2, kGlobal = 0, kNotReady = 600;
struct Properties {
  int type = 1, handle_types = 0;
  Location location{kDevice, 0};
  void* security = nullptr;
  unsigned char compression = 0, rdma = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};
struct Access {
  Location location{kDevice, 0};
  int flags = kReadWrite;
};
#ifdef CUDA_VERSION
static_assert(sizeof(Properties) == sizeof(CUmemAllocationProp) && sizeof(Access) == sizeof(CUmemAccessDesc));
static_assert(CU_MEM_LOCATION_TYPE_HOST_NUMA == kHostNuma && CUDA_ERROR_NOT_READY == kNotReady);
static_assert(CU_STREAM_CAPTURE_MODE_RELAXED == kRelaxed && CU_EVENT_DISABLE_TIMING == kNoTiming);
static_assert(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED == 102);
static_assert(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID == 134 && CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT == 40);
static_assert(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED == 141);
#endif

#define CALLS(X)                                                                                         \
  X(Init, cuInit, unsigned)                                                                              \
  X(Version, cuDriverGetVersion, int*)                                                                   \
  X(DeviceCount, cuDeviceGetCount, int*)                                                                 \
  X(DeviceName, cuDeviceGetName, char*, int, int)                                                        \
  X(DeviceTotal, cuDeviceTotalMem_v2, size_t*, int)                                                      \
  X(Attribute, cuDeviceGetAttribute, int*, int, int)                                                     \
  X(CanAccessPeer, cuDeviceCanAccessPeer, int*, int, int)                                                \
  X(Retain, cuDevicePrimaryCtxRetain, void**, int)                                                       \
  X(Reset, cuDevicePrimaryCtxReset_v2, int)                                                              \
  X(SetCurrent, cuCtxSetCurrent, void*)                                                                  \
  X(Synchronize, cuCtxSynchronize)                                                                       \
  X(MemInfo, cuMemGetInfo_v2, size_t*, size_t*)                                                          \
  X(Granularity, cuMemGetAllocationGranularity, size_t*, const Properties*, int)                         \
  X(Reserve, cuMemAddressReserve, Ptr*, size_t, size_t, Ptr, unsigned long long)                         \
  X(Create, cuMemCreate, Frame*, size_t, const Properties*, unsigned long long)                          \
  X(Release, cuMemRelease, Frame)                                                                        \
  X(Map, cuMemMap, Ptr, size_t, size_t, Frame, unsigned long long)                                       \
  X(Unmap, cuMemUnmap, Ptr, size_t)                                                                      \
  X(SetAccess, cuMemSetAccess, Ptr, size_t, const Access*, size_t)                                       \
  X(Export, cuMemExportToShareableHandle, void*, Frame, int, unsigned long long)                         \
  X(Import, cuMemImportFromShareableHandle, Frame*, void*, int)                                          \
  X(HostAlloc, cuMemHostAlloc, void**, size_t, unsigned)                                                 \
  X(HostFree, cuMemFreeHost, void*)                                                                      \
  X(ToDevice, cuMemcpyHtoDAsync_v2, Ptr, const void*, size_t, Stream)                                    \
  X(ToHost, cuMemcpyDtoHAsync_v2, void*, Ptr, size_t, Stream)                                            \
  X(OnDevice, cuMemcpyDtoDAsync_v2, Ptr, Ptr, size_t, Stream)                                            \
  X(Memset, cuMemsetD32Async, Ptr, unsigned, size_t, Stream)                                             \
  X(NewStream, cuStreamCreate, Stream*, unsigned)                                                        \
  X(Wait, cuStreamSynchronize, Stream)                                                                   \
  X(WaitEvent, cuStreamWaitEvent, Stream, Event, unsigned)                                               \
  X(NewEvent, cuEventCreate, Event*, unsigned)                                                           \
  X(Record, cuEventRecord, Event, Stream)                                                                \
  X(Query, cuEventQuery, Event)                                                                          \
  X(BeginCapture, cuStreamBeginCapture_v2, Stream, int)                                                  \
  X(EndCapture, cuStreamEndCapture, Stream, void**)                                                      \
  X(ExchangeMode, cuThreadExchangeStreamCaptureMode, int*)                                               \
  X(LoadModule, cuModuleLoadData, void**, const void*)                                                   \
  X(GetFunction, cuModuleGetFunction, void**, void*, const char*)                                        \
  X(Launch, cuLaunchKernel, void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
    Stream, void**, void**)                                                                              \
  X(ErrorName, cuGetErrorName, int, const char**)

struct Driver {
#define X(name, symbol, ...) int (*name)(__VA_ARGS__) = nullptr;
  CALLS(X)
#undef X
} cu;

// ---- what a step says: lines for people, figures for the file; both travel to the parent through a pipe
FILE* to_parent = nullptr;
[[gnu::format(printf, 1, 2)]] void Line(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("L\t", to_parent);
  std::vfprintf(to_parent, format, arguments);
  std::fputc('\n', to_parent);
  std::fflush(to_parent);
  va_end(arguments);
}
void Figure(const std::string& name, double value, const char* unit) {
  std::fprintf(to_parent, "F\t%s\t%.6g\t%s\n", name.c_str(), value, unit);
  std::fflush(to_parent);
}
struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string Name(int error) {
  const char* name = nullptr;
  cu.ErrorName(error, &name);
  return name != nullptr ? name : "error " + std::to_string(error);
}
void Must(int error, const char* call) {
  if (error != 0) throw std::runtime_error(std::string(call) + ": " + Name(error));
}
#define MUST(call) Must(cu.call, #call)

using Clock = std::chrono::steady_clock;
double Seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
template <typename Work>
double Micros(const Work& work) {
  const auto start = Clock::now();
  work();
  return Seconds(start) * 1e6;
}
double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

constexpr size_t kMiB = size_t{1} << 20;
int Attribute(int number) {
  int value = 0;
  return cu.Attribute(&value, number, 0) == 0 ? value : -1;
}
void* context = nullptr;  // current on the first thread; others take it too
void Start() {
  MUST(Init(0));
  MUST(Retain(&context, 0));
  MUST(SetCurrent(context));
}
void StartWithVmm() {
  Start();
  if (Attribute(102) != 1) throw Skip("the device has no virtual memory management (attribute 102 is not 1)");
}
Ptr Reserve(size_t size) {
  Ptr address = 0;
  MUST(Reserve(&address, size, 0, 0, 0));
  return address;
}
Frame Create(size_t size, const Properties& properties = {}) {
  Frame frame = 0;
  MUST(Create(&frame, size, &properties, 0));
  return frame;
}
Ptr MapAt(Ptr address, size_t size, Frame frame) {
  const Access access;
  MUST(Map(address, size, 0, frame, 0));
  MUST(SetAccess(address, size, &access, 1));
  return address;
}
Ptr NewRange(size_t size) { return MapAt(Reserve(size), size, Create(size)); }
Stream NewStream() {
  Stream stream = nullptr;
  MUST(NewStream(&stream, kNonBlocking));
  return stream;
}
Event NewEvent() {
  Event event = nullptr;
  MUST(NewEvent(&event, kNoTiming));
  return event;
}
unsigned* Pinned(size_t bytes) {
  void* address = nullptr;
  MUST(HostAlloc(&address, bytes, 0));
  return static_cast<unsigned*>(address);
}

}  // namespace

#endif
