// Allocation, pinned memory, pointers, copies and memsets.
#include "tools/emulated_gpu/device/memory.h"

#include <cstring>

#include "tools/emulated_gpu/cudart/cudart.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/copies.h"
#include "tools/emulated_gpu/device/profile.h"

using namespace weir::emulated;

namespace {

Direction DirectionOf(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return Direction::kHostToHost;
    case cudaMemcpyHostToDevice:
      return Direction::kHostToDevice;
    case cudaMemcpyDeviceToHost:
      return Direction::kDeviceToHost;
    case cudaMemcpyDeviceToDevice:
      return Direction::kDeviceToDevice;
    default:
      return Direction::kAny;
  }
}

Rows OneRow(size_t bytes) { return {bytes, bytes, bytes, bytes == 0 ? size_t{0} : size_t{1}}; }

}  // namespace

cudaError_t cudaMalloc(void** address, size_t size) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (address == nullptr) return Last(cudaErrorInvalidValue);
  uintptr_t found = 0;
  const Status status = AllocateDevice(&found, size);
  *address = reinterpret_cast<void*>(found);
  return Last(status);
}

cudaError_t cudaFree(void* address) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(FreeDevice(reinterpret_cast<uintptr_t>(address)));
}

cudaError_t cudaHostAlloc(void** address, size_t size, unsigned int) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (address == nullptr) return Last(cudaErrorInvalidValue);
  if (size == 0) {  // documented as success with no memory
    *address = nullptr;
    return cudaSuccess;
  }
  return Last(AllocatePinned(address, size));
}

cudaError_t cudaMallocHost(void** address, size_t size) {
  WEIR_CUDART_FAULT_POINT();
  return cudaHostAlloc(address, size, 0);
}

cudaError_t cudaFreeHost(void* address) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(FreePinned(address));
}

cudaError_t cudaHostRegister(void* address, size_t size, unsigned int) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(RegisterHost(address, size));
}

cudaError_t cudaHostUnregister(void* address) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(UnregisterHost(address));
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (device == nullptr || Locate(reinterpret_cast<uintptr_t>(host)).where == Where::kPageable) {
    return Last(cudaErrorInvalidValue);
  }
  *device = host;  // unified addressing
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  WEIR_CUDART_NEEDS_CONTEXT();
  ReportedMemory(free, total);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (attributes == nullptr) return Last(cudaErrorInvalidValue);
  std::memset(attributes, 0, sizeof *attributes);
  void* address = const_cast<void*>(pointer);
  const Placement placement = Locate(reinterpret_cast<uintptr_t>(pointer));
  attributes->device = placement.device;
  switch (placement.where) {
    case Where::kDevice:
      attributes->type = cudaMemoryTypeDevice;
      attributes->devicePointer = address;
      return cudaSuccess;
    case Where::kPinned:
    case Where::kRegistered:
      attributes->type = cudaMemoryTypeHost;
      attributes->devicePointer = attributes->hostPointer = address;
      return cudaSuccess;
    default:
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = -2;  // cudaInvalidDeviceId, as the runtime gives for memory it does not know
      attributes->hostPointer = address;
      return cudaSuccess;
  }
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(Copy(to, from, OneRow(bytes), DirectionOf(kind), Call::kBlocking, nullptr));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(Copy(to, from, OneRow(bytes), DirectionOf(kind), Call::kAsync, stream));
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (!IsDevice(to_device) || !IsDevice(from_device)) return Last(cudaErrorInvalidDevice);
  return Last(CopyBetweenDevices(to, to_device, from, from_device, bytes));
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (!IsDevice(to_device) || !IsDevice(from_device)) return Last(cudaErrorInvalidDevice);
  return Last(Copy(to, from, OneRow(bytes), Direction::kDeviceToDevice, Call::kAsync, stream));
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (width > to_pitch || width > from_pitch) return Last(cudaErrorInvalidValue);
  return Last(Copy(to, from, {to_pitch, from_pitch, width, height}, DirectionOf(kind), Call::kAsync, stream));
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(Fill(to, static_cast<unsigned>(value), 1, OneRow(bytes), Call::kBlocking, nullptr));
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(Fill(to, static_cast<unsigned>(value), 1, OneRow(bytes), Call::kAsync, stream));
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  WEIR_CUDART_NEEDS_CONTEXT();
  size_t size = 0;
  const uintptr_t found = address == nullptr ? 0 : VariableAddress(symbol, &size);
  if (found == 0) return Last(cudaErrorInvalidSymbol);
  *address = reinterpret_cast<void*>(found);
  return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind) {
  WEIR_CUDART_NEEDS_CONTEXT();
  size_t size = 0;
  const uintptr_t found = VariableAddress(symbol, &size);
  if (found == 0) return Last(cudaErrorInvalidSymbol);
  if (offset > size || bytes > size - offset) return Last(cudaErrorInvalidValue);
  return Last(Copy(reinterpret_cast<void*>(found + offset), from, OneRow(bytes), Direction::kAny,
                   Call::kBlocking, nullptr));
}
