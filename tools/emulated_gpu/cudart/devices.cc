// Devices, properties, peers.
#include <algorithm>
#include <cstring>

#include "tools/emulated_gpu/cudart/cudart.h"
#include "tools/emulated_gpu/device/attributes.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/memory.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/streams.h"
#include "tools/emulated_gpu/device/torch_library.h"

using namespace weir::emulated;

namespace {

int Attribute(CUdevice_attribute attribute) {
  int value = 0;
  DeviceAttribute(&value, attribute);
  return value;
}

void FillLimits(cudaDeviceProp& p) {
  p.sharedMemPerBlock = Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  p.sharedMemPerBlockOptin = Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  p.sharedMemPerMultiprocessor = Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  p.reservedSharedMemPerBlock = Attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  p.regsPerBlock = Attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  p.regsPerMultiprocessor = Attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  p.warpSize = Attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  p.maxThreadsPerBlock = Attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  p.maxThreadsPerMultiProcessor = Attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  p.maxBlocksPerMultiProcessor = Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  p.maxThreadsDim[0] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  p.maxThreadsDim[1] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  p.maxThreadsDim[2] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  p.maxGridSize[0] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  p.maxGridSize[1] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  p.maxGridSize[2] = Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
}

void FillAbilities(cudaDeviceProp& p) {
  p.memPitch = Attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  p.totalConstMem = Attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  p.textureAlignment = Attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  p.texturePitchAlignment = Attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
  p.surfaceAlignment = Attribute(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT);
  p.multiProcessorCount = Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  p.l2CacheSize = Attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  p.memoryBusWidth = Attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  p.asyncEngineCount = Attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  p.clusterLaunch = Attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = p.streamPrioritiesSupported = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = p.computePreemptionSupported = 1;
  p.canUseHostPointerForRegisteredMem = p.cooperativeLaunch = p.hostRegisterSupported = 1;
  p.memoryPoolsSupported = Attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  p.hostNumaId = -1;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  WEIR_CUDART_FAULT_POINT();
  if (count == nullptr) return Last(cudaErrorInvalidValue);
  *count = 0;
  const Status status = Start();
  if (status != CUDA_SUCCESS) return Last(status);
  LoadTorchLibrary();
  *count = DeviceCount();
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  WEIR_CUDART_FAULT_POINT();
  if (device == nullptr) return Last(cudaErrorInvalidValue);
  const Status status = Start();
  if (status != CUDA_SUCCESS) return Last(status);
  *device = CurrentDevice();
  return cudaSuccess;
}

// Since CUDA 12 it makes the context too.
cudaError_t cudaSetDevice(int device) {
  WEIR_CUDART_FAULT_POINT();
  const Status status = Start();
  if (status != CUDA_SUCCESS) return Last(status);
  if (!IsDevice(device)) return Last(cudaErrorInvalidDevice);
  ActivatePrimary(device);
  SetCurrent(PrimaryContext(device));
  return Last(UsePrimary());
}

cudaError_t cudaDeviceSynchronize() {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(SynchronizeDevice(CurrentDevice()));
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  WEIR_CUDART_FAULT_POINT();
  const Status status = Start();
  if (status != CUDA_SUCCESS) return Last(status);
  if (properties == nullptr) return Last(cudaErrorInvalidValue);
  if (!IsDevice(device)) return Last(cudaErrorInvalidDevice);
  std::memset(properties, 0, sizeof *properties);
  const Profile& profile = *Settings().profile;
  DeviceName(properties->name, sizeof properties->name);
  DeviceUuid(properties->uuid.bytes, PhysicalDevice(device));
  properties->pciBusID = PhysicalDevice(device);
  properties->totalGlobalMem = Settings().vram_bytes;
  properties->major = profile.major;
  properties->minor = profile.minor;
  FillLimits(*properties);
  FillAbilities(*properties);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  WEIR_CUDART_FAULT_POINT();
  const Status status = Start();
  if (status != CUDA_SUCCESS) return Last(status);
  if (value == nullptr) return Last(cudaErrorInvalidValue);
  if (!IsDevice(device)) return Last(cudaErrorInvalidDevice);
  return Last(DeviceAttribute(value, static_cast<CUdevice_attribute>(attribute)));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  WEIR_CUDART_FAULT_POINT();
  if (text == nullptr || length < 13) return Last(cudaErrorInvalidValue);
  if (!IsDevice(device)) return Last(cudaErrorInvalidDevice);
  DevicePciAddress(text, static_cast<size_t>(length), PhysicalDevice(device));
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  WEIR_CUDART_FAULT_POINT();
  const Status status = Start();
  if (status != CUDA_SUCCESS) return Last(status);
  if (can == nullptr) return Last(cudaErrorInvalidValue);
  if (!IsDevice(device) || !IsDevice(peer)) return Last(cudaErrorInvalidDevice);
  *can = CanAccessPeer(device, peer) ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (flags != 0) return Last(cudaErrorInvalidValue);
  if (!IsDevice(peer)) return Last(cudaErrorInvalidDevice);
  ActivatePrimary(peer);
  return Last(EnablePeer(CurrentDevice(), peer));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (!IsDevice(peer)) return Last(cudaErrorInvalidDevice);
  return Last(DisablePeer(CurrentDevice(), peer));
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer) {
  WEIR_CUDART_FAULT_POINT();
  const Status status = Start();
  if (status != CUDA_SUCCESS) return Last(status);
  return Last(PeerAttribute(value, static_cast<CUdevice_P2PAttribute>(attribute), device, peer));
}
