// How much of a kernel fits the device.
#include "tools/emulated_gpu/device/launches.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

namespace {

// Blocks of one cluster.
unsigned ClusterSize(const CUlaunchConfig& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (config.attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& cluster = config.attrs[i].value.clusterDim;
    return cluster.x * cluster.y * cluster.z;
  }
  return 1;
}

constexpr unsigned kMostBlocksOfACluster =
    8;  // CUDA C++ programming guide, "Thread Block Clusters": the portable size

}  // namespace

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int block_size, size_t shared) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = BlocksPerMultiprocessor(block_size, shared);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int block_size, size_t shared,
                                                              unsigned int flags) {
  WEIR_DRIVER_FAULT_POINT();
  if ((flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) != 0) return CUDA_ERROR_INVALID_VALUE;
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, shared);
}

CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction, const CUlaunchConfig* config) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (size == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (Settings().profile->major < 9) return CUDA_ERROR_NOT_SUPPORTED;
  *size = kMostBlocksOfACluster;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig* config) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (clusters == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Profile& profile = *Settings().profile;
  if (profile.major < 9) return CUDA_ERROR_NOT_SUPPORTED;
  const unsigned size = ClusterSize(*config),
                 threads = config->blockDimX * config->blockDimY * config->blockDimZ;
  if (size == 0 || size > kMostBlocksOfACluster || threads == 0 || threads > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  const int blocks = BlocksPerMultiprocessor(static_cast<int>(threads), config->sharedMemBytes);
  *clusters = blocks * profile.multiprocessors / static_cast<int>(size);
  return CUDA_SUCCESS;
}
