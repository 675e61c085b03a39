// Memory: allocation, pinned memory, pointers, copies and memsets.
#include "tools/emulated_gpu/device/memory.h"

#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/copies.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/vmm.h"
#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

namespace {

Rows OneRow(size_t bytes) { return {bytes, bytes, bytes, bytes == 0 ? size_t{0} : size_t{1}}; }
void* Pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

CUresult CopyBytes(void* to, const void* from, size_t bytes, Direction direction, Call call,
                   CUstream stream) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return Copy(to, from, OneRow(bytes), direction, call, stream);
}

CUresult FillElements(CUdeviceptr to, unsigned value, size_t element, size_t count, Call call,
                      CUstream stream) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (to % element != 0) return CUDA_ERROR_INVALID_VALUE;
  return Fill(Pointer(to), value, element, OneRow(count * element), call, stream);
}

}  // namespace

CUresult cuMemAlloc(CUdeviceptr* address, size_t size) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (address == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  uintptr_t found = 0;
  const Status status = AllocateDevice(&found, size);
  *address = found;
  return status;
}

CUresult cuMemFree(CUdeviceptr address) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return FreeDevice(address);
}

CUresult cuMemHostAlloc(void** address, size_t size, unsigned int) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AllocatePinned(address, size);
}

CUresult cuMemAllocHost(void** address, size_t size) {
  WEIR_DRIVER_FAULT_POINT();
  return cuMemHostAlloc(address, size, 0);
}

CUresult cuMemFreeHost(void* address) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return FreePinned(address);
}

CUresult cuMemHostRegister(void* address, size_t size, unsigned int) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return RegisterHost(address, size);
}

CUresult cuMemHostUnregister(void* address) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return UnregisterHost(address);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* host, unsigned int) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  const auto address = reinterpret_cast<uintptr_t>(host);
  if (device == nullptr || Locate(address).where == Where::kPageable) return CUDA_ERROR_INVALID_VALUE;
  *device = address;  // unified addressing
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  ReportedMemory(free, total);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr* begin, size_t* size, CUdeviceptr address) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  const Placement placement = Locate(address);
  if (placement.where == Where::kPageable) return CUDA_ERROR_NOT_FOUND;
  if (begin != nullptr) *begin = placement.begin;
  if (size != nullptr) *size = placement.size;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  WEIR_DRIVER_NEEDS_INIT();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Placement placement = Locate(address);
  if (placement.where == Where::kPageable) return CUDA_ERROR_INVALID_VALUE;
  const bool device = placement.where == Where::kDevice;
  Placement range = placement;  // what was reserved, where a mapping lies in a reservation
  LocateReservation(address, &range.begin, &range.size);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(value) = PrimaryContext(placement.device);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(value) = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(value) = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (device) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<CUdeviceptr*>(value) = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(value) = 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = placement.device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(value) = range.begin;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(value) = range.size;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      *static_cast<CUdeviceptr*>(value) = placement.begin;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      *static_cast<size_t*>(value) = placement.size;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned*>(value) = 1;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  WEIR_DRIVER_FAULT_POINT();
  return CopyBytes(Pointer(to), Pointer(from), bytes, Direction::kAny, Call::kBlocking, nullptr);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  WEIR_DRIVER_FAULT_POINT();
  return CopyBytes(Pointer(to), Pointer(from), bytes, Direction::kAny, Call::kAsync, stream);
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  WEIR_DRIVER_FAULT_POINT();
  return CopyBytes(Pointer(to), from, bytes, Direction::kHostToDevice, Call::kBlocking, nullptr);
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  WEIR_DRIVER_FAULT_POINT();
  return CopyBytes(Pointer(to), from, bytes, Direction::kHostToDevice, Call::kAsync, stream);
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  WEIR_DRIVER_FAULT_POINT();
  return CopyBytes(to, Pointer(from), bytes, Direction::kDeviceToHost, Call::kBlocking, nullptr);
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  WEIR_DRIVER_FAULT_POINT();
  return CopyBytes(to, Pointer(from), bytes, Direction::kDeviceToHost, Call::kAsync, stream);
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  WEIR_DRIVER_FAULT_POINT();
  return CopyBytes(Pointer(to), Pointer(from), bytes, Direction::kDeviceToDevice, Call::kBlocking, nullptr);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  WEIR_DRIVER_FAULT_POINT();
  return CopyBytes(Pointer(to), Pointer(from), bytes, Direction::kDeviceToDevice, Call::kAsync, stream);
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                      size_t bytes) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (DeviceOfContext(to_context) < 0 || DeviceOfContext(from_context) < 0) return CUDA_ERROR_INVALID_CONTEXT;
  return CopyBetweenDevices(Pointer(to), DeviceOfContext(to_context), Pointer(from),
                            DeviceOfContext(from_context), bytes);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           size_t bytes, CUstream stream) {
  WEIR_DRIVER_FAULT_POINT();
  if (DeviceOfContext(to_context) < 0 || DeviceOfContext(from_context) < 0) return CUDA_ERROR_INVALID_CONTEXT;
  return CopyBytes(Pointer(to), Pointer(from), bytes, Direction::kDeviceToDevice, Call::kAsync, stream);
}
CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  WEIR_DRIVER_FAULT_POINT();
  return FillElements(to, value, 1, count, Call::kBlocking, nullptr);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  WEIR_DRIVER_FAULT_POINT();
  return FillElements(to, value, 1, count, Call::kAsync, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  WEIR_DRIVER_FAULT_POINT();
  return FillElements(to, value, 2, count, Call::kAsync, stream);
}
CUresult cuMemsetD32(CUdeviceptr to, unsigned int value, size_t count) {
  WEIR_DRIVER_FAULT_POINT();
  return FillElements(to, value, 4, count, Call::kBlocking, nullptr);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  WEIR_DRIVER_FAULT_POINT();
  return FillElements(to, value, 4, count, Call::kAsync, stream);
}
