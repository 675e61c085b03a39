#include "tools/emulated_gpu/device/attributes.h"

#include <cstdio>
#include <cstring>

#include "tools/emulated_gpu/device/profile.h"

namespace weir::emulated {
namespace {

struct Fixed {
  CUdevice_attribute attribute;
  int value;
};

// The same for every profile: CUDA C++ programming guide ("Technical specifications", "Unified addressing").
// What the emulator does not do (IPC, managed memory, multicast, NUMA, sparse arrays)
// is 0.
constexpr Fixed kFixed[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 << 10},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
};

}  // namespace

Status DeviceAttribute(int* value, CUdevice_attribute attribute) {
  const Profile& profile = *Settings().profile;
  *value = 0;
  if (attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  for (const Fixed& fixed : kFixed) {
    if (fixed.attribute == attribute) *value = fixed.value;
  }
  const Fixed by_profile[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, profile.major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, profile.minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, profile.multiprocessors},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, static_cast<int>(profile.l2_bytes)},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
       static_cast<int>(profile.shared_per_multiprocessor)},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
       static_cast<int>(profile.shared_per_block_optin)},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, profile.threads_per_multiprocessor},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, profile.blocks_per_multiprocessor},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, profile.memory_bus_bits},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, profile.clock_khz},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, profile.memory_clock_khz},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, profile.copy_engines},
      {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, profile.major >= 9 ? 1 : 0},
  };
  for (const Fixed& fixed : by_profile) {
    if (fixed.attribute == attribute) *value = fixed.value;
  }
  return CUDA_SUCCESS;
}

void DeviceName(char* text, size_t room) {
  std::snprintf(text, room, "%s (emulated by Weir)", Settings().profile->device_name.c_str());
}

void DeviceUuid(char* bytes, int device) {
  char text[32];
  std::snprintf(text, sizeof text, "WEIR-EMULATED-%02d", device);
  std::memcpy(bytes, text, 16);
}

void DevicePciAddress(char* text, size_t room, int device) {
  std::snprintf(text, room, "0000:%02x:00.0", static_cast<unsigned>(device));
}

// The driver gives GeForce cards of these generations no peer access.
bool HasPeers() { return Settings().profile->device_name.find("GeForce") == std::string::npos; }

}  // namespace weir::emulated
