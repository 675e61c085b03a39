// Kernel launches, kernel attributes, occupancy.
#include "tools/emulated_gpu/device/launches.h"

#include <cstring>

#include "tools/emulated_gpu/cudart/cudart.h"
#include "tools/emulated_gpu/device/profile.h"

using namespace weir::emulated;

namespace {

cudaError_t LaunchHostStub(const void* function, dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                           void** arguments) {
  const Status ready = UsePrimary();
  if (ready != CUDA_SUCCESS) return Last(ready);
  if (function == nullptr) return Last(cudaErrorInvalidDeviceFunction);
  const Shape shape{{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared};
  const Status status = Launch(shape, stream, KernelOfHostStub(function), {arguments});
  return Last(status == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidConfiguration
                                                 : static_cast<cudaError_t>(status));
}

struct CallConfiguration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
thread_local CallConfiguration configuration;

}  // namespace

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream) {
  WEIR_CUDART_FAULT_POINT();
  return LaunchHostStub(function, grid, block, shared, stream, arguments);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                        size_t shared, cudaStream_t stream) {
  WEIR_CUDART_FAULT_POINT();
  return LaunchHostStub(function, grid, block, shared, stream, arguments);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  WEIR_CUDART_FAULT_POINT();
  if (config == nullptr) return Last(cudaErrorInvalidValue);
  return LaunchHostStub(function, config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream,
                        arguments);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (attributes == nullptr) return Last(cudaErrorInvalidValue);
  std::memset(attributes, 0, sizeof *attributes);
  const Profile& profile = *Settings().profile;
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs =
      32;  // a typical element-wise kernel; nothing here depends on it but occupancy heuristics
  attributes->binaryVersion = attributes->ptxVersion = profile.major * 10 + profile.minor;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(profile.shared_per_block_optin);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  WEIR_CUDART_NEEDS_CONTEXT();
  const auto most = static_cast<int>(Settings().profile->shared_per_block_optin);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value > most)
    return Last(cudaErrorInvalidValue);
  return cudaSuccess;
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t, cudaFuncAttribute attribute, int value, int) {
  WEIR_CUDART_FAULT_POINT();
  return cudaFuncSetAttribute(nullptr, attribute, value);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int block_size,
                                                          size_t shared) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (blocks == nullptr || block_size <= 0) return Last(cudaErrorInvalidValue);
  *blocks = BlocksPerMultiprocessor(block_size, shared);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                   int block_size, size_t shared,
                                                                   unsigned int) {
  WEIR_CUDART_FAULT_POINT();
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, shared);
}

// What nvcc's host stubs call (crt/host_runtime.h): `kernel<<<...>>>` pushes, the stub pops and launches.
extern "C" {
#pragma GCC visibility push(default)

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
  configuration = {grid, block, shared, static_cast<cudaStream_t>(stream)};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}

// A kernel handle is the address of its host stub.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  WEIR_CUDART_FAULT_POINT();
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream) {
  WEIR_CUDART_FAULT_POINT();
  return LaunchHostStub(kernel, grid, block, shared, stream, arguments);
}

#pragma GCC visibility pop
}
