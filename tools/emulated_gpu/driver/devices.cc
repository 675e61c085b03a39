// Initialisation, devices, errors, entry points by name.
#include <cstring>

#include "tools/emulated_gpu/device/attributes.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

struct DriverName {  // generated: driver_table.c
  const char* base;
  void* function;
};
extern "C" const DriverName weir_driver_table[];
extern "C" const int weir_driver_table_size;

namespace weir::emulated {

void* FindDriverFunction(const char* name) {
  int low = 0, high = weir_driver_table_size;
  while (low < high) {
    const int middle = (low + high) / 2;
    const int order = std::strcmp(weir_driver_table[middle].base, name);
    if (order == 0) return weir_driver_table[middle].function;
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return nullptr;
}

}  // namespace weir::emulated

CUresult cuInit(unsigned int flags) {
  WEIR_DRIVER_FAULT_POINT();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return Start();
}

CUresult cuDriverGetVersion(int* version) {
  WEIR_DRIVER_FAULT_POINT();
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  WEIR_DRIVER_NEEDS_INIT();
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = DeviceCount();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  WEIR_DRIVER_NEEDS_INIT();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  WEIR_DRIVER_NEEDS_INIT();
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  DeviceName(name, static_cast<size_t>(length));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  WEIR_DRIVER_NEEDS_INIT();
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  DeviceUuid(uuid->bytes, PhysicalDevice(device));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  WEIR_DRIVER_NEEDS_INIT();
  if (text == nullptr || length < 13) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  DevicePciAddress(text, static_cast<size_t>(length), PhysicalDevice(device));
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  WEIR_DRIVER_NEEDS_INIT();
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = Settings().vram_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  WEIR_DRIVER_NEEDS_INIT();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return DeviceAttribute(value, attribute);
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  WEIR_DRIVER_NEEDS_INIT();
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device) || !IsDevice(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = CanAccessPeer(device, peer) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device,
                                 CUdevice peer) {
  WEIR_DRIVER_NEEDS_INIT();
  return PeerAttribute(value, attribute, device, peer);
}

CUresult cuGetProcAddress(const char* symbol, void** function, int, cuuint64_t,
                          CUdriverProcAddressQueryResult* result) {
  WEIR_DRIVER_FAULT_POINT();
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = FindDriverFunction(symbol);
  const bool found = *function != nullptr;
  if (result != nullptr) *result = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// The driver's log: nothing is ever written to it, so a callback is kept by number only.
CUresult cuLogsRegisterCallback(CUlogsCallback callback, void*, CUlogsCallbackHandle* handle) {
  if (callback == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  static char kept;
  *handle = reinterpret_cast<CUlogsCallbackHandle>(&kept);
  return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle) { return CUDA_SUCCESS; }
