// Virtual memory management. Arguments of the one device are checked here, the rules are in device/vmm.cc.
#include "tools/emulated_gpu/device/vmm.h"

#include <cstring>

#include "tools/emulated_gpu/device/addresses.h"
#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

namespace {

CUresult CheckProperties(const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_NOT_SUPPORTED;  // host-backed
  if (properties->location.id != 0) return CUDA_ERROR_INVALID_DEVICE;
  // torch's expandable segments ask for file descriptors and export only to share; the export itself is
  // refused.
  if ((properties->requestedHandleTypes & ~unsigned{CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR}) != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
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
  return status != CUDA_SUCCESS ? status : CreateFrame(handle, size);
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
  if (properties == nullptr || FrameSize(handle, &size) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  std::memset(properties, 0, sizeof *properties);
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
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
  if (descriptions == nullptr || count != 1) return CUDA_ERROR_INVALID_VALUE;
  const CUmemLocation& location = descriptions[0].location;
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (location.id != 0) return CUDA_ERROR_INVALID_DEVICE;
  switch (descriptions[0].flags) {
    case CU_MEM_ACCESS_FLAGS_PROT_NONE:
      return SetAccess(address, size, Permission::kNone);
    case CU_MEM_ACCESS_FLAGS_PROT_READ:
      return SetAccess(address, size, Permission::kRead);
    case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
      return SetAccess(address, size, Permission::kReadWrite);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  WEIR_DRIVER_NEEDS_INIT();
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Permission access = Permission::kNone;
  const Status status = GetAccess(address, &access);
  if (status != CUDA_SUCCESS) return status;
  *flags = access == Permission::kNone   ? CU_MEM_ACCESS_FLAGS_PROT_NONE
           : access == Permission::kRead ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                         : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}
