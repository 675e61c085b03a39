// Virtual memory management. Descriptions are checked here, the rules are in device/vmm.cc.
#include "tools/emulated_gpu/device/vmm.h"

#include <cstring>

#include "tools/emulated_gpu/device/addresses.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/memory.h"
#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

namespace {

CUresult CheckProperties(const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_NOT_SUPPORTED;  // host-backed
  if (!IsDevice(properties->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  // torch's expandable segments ask for file descriptors and export only to share; the export itself is
  // refused.
  if ((properties->requestedHandleTypes & ~unsigned{CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR}) != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

// What a device is to be allowed on the mapping at `address`.
CUresult CheckDescription(const CUmemAccessDesc& description, CUdeviceptr address, Permission* access) {
  const CUmemLocation& location = description.location;
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (!IsDevice(location.id)) return CUDA_ERROR_INVALID_DEVICE;
  const Placement placement = Locate(address);
  const bool reaches = placement.where != Where::kDevice || placement.device == location.id ||
                       CanAccessPeer(location.id, placement.device);
  if (!reaches) return CUDA_ERROR_INVALID_DEVICE;
  switch (description.flags) {
    case CU_MEM_ACCESS_FLAGS_PROT_NONE:
      *access = Permission::kNone;
      return CUDA_SUCCESS;
    case CU_MEM_ACCESS_FLAGS_PROT_READ:
      *access = Permission::kRead;
      return CUDA_SUCCESS;
    case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
      *access = Permission::kReadWrite;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  WEIR_DRIVER_NEEDS_INIT();
  const CUresult status = CheckProperties(properties);
  if (status != CUDA_SUCCESS) return status;
  if (granularity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags) {
  WEIR_DRIVER_NEEDS_INIT();
  if (address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  uintptr_t found = 0;
  const Status status = ReserveAddresses(&found, size, alignment, hint);
  if (status == CUDA_SUCCESS) *address = found;
  return status;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  WEIR_DRIVER_NEEDS_INIT();
  return FreeReservation(address, size);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* properties,
                     unsigned long long flags) {
  WEIR_DRIVER_NEEDS_INIT();
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = CheckProperties(properties);
  return status != CUDA_SUCCESS ? status : CreateFrame(handle, size, properties->location.id);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  WEIR_DRIVER_NEEDS_INIT();
  return ReleaseFrame(handle);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  WEIR_DRIVER_NEEDS_INIT();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return RetainFrame(reinterpret_cast<uintptr_t>(address), handle);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  WEIR_DRIVER_NEEDS_INIT();
  size_t size = 0;
  int device = 0;
  if (properties == nullptr || DescribeFrame(handle, &size, &device) != CUDA_SUCCESS)
    return CUDA_ERROR_INVALID_VALUE;
  std::memset(properties, 0, sizeof *properties);
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties->location.id = device;
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  WEIR_DRIVER_NEEDS_INIT();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return Map(address, size, offset, handle);
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  WEIR_DRIVER_NEEDS_INIT();
  return Unmap(address, size);
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* descriptions, size_t count) {
  WEIR_DRIVER_NEEDS_INIT();
  if (descriptions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    Permission access;
    const CUresult status = CheckDescription(descriptions[i], address, &access);
    if (status != CUDA_SUCCESS) return status;
  }
  for (size_t i = 0; i < count; ++i) {
    Permission access;
    CheckDescription(descriptions[i], address, &access);
    const CUresult status = SetAccess(address, size, descriptions[i].location.id, access);
    if (status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  WEIR_DRIVER_NEEDS_INIT();
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || !IsDevice(location->id))
    return CUDA_ERROR_INVALID_VALUE;
  Permission access = Permission::kNone;
  const Status status = GetAccess(address, location->id, &access);
  if (status != CUDA_SUCCESS) return status;
  *flags = access == Permission::kNone   ? CU_MEM_ACCESS_FLAGS_PROT_NONE
           : access == Permission::kRead ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                         : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}
