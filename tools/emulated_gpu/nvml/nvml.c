// A small libnvidia-ml.so.1, only for what torch asks: no other process uses the device, and it is on no
// fabric. `nvmlInit` (the old name) is missing on purpose: torch.cuda.device_count() then counts through
// cudart.
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3 };  // nvmlReturn_t of the NVML reference

static char device;  // its address is the handle

EXPORT int nvmlInit_v2(void) { return kSuccess; }
EXPORT int nvmlShutdown(void) { return kSuccess; }

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (version == NULL) return kInvalidArgument;
  *version = 13020;  // as cuDriverGetVersion
  return kSuccess;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** handle) {
  if (bus == NULL || handle == NULL) return kInvalidArgument;
  *handle = &device;
  return kSuccess;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses(void* handle, unsigned* count, void* processes) {
  (void)processes;
  if (handle != &device || count == NULL) return kInvalidArgument;
  *count = 0;
  return kSuccess;
}

// nvmlGpuFabricInfo_v2_t: version, 16 bytes of cluster, status, clique, state.
struct fabric_info {
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
};

EXPORT int nvmlDeviceGetGpuFabricInfoV(void* handle, void* info) {
  if (handle != &device || info == NULL) return kInvalidArgument;
  struct fabric_info* fabric = info;
  memset(fabric->cluster, 0, sizeof fabric->cluster);
  fabric->status = kNotSupported;
  fabric->state = 0;  // NVML_GPU_FABRIC_STATE_NOT_SUPPORTED
  return kSuccess;
}

EXPORT const char* nvmlErrorString(int status) {
  return status == kSuccess ? "Success" : status == kNotSupported ? "Not Supported" : "Invalid Argument";
}

static int refuse(const char* name) {
  fprintf(stderr, "weir: emulated GPU: %s is not emulated: NOT_SUPPORTED\n", name);
  return kNotSupported;
}
EXPORT int nvmlDeviceGetCount_v2(void) { return refuse("nvmlDeviceGetCount_v2"); }
EXPORT int nvmlDeviceGetHandleByIndex_v2(void) { return refuse("nvmlDeviceGetHandleByIndex_v2"); }
EXPORT int nvmlDeviceGetHandleByUUID(void) { return refuse("nvmlDeviceGetHandleByUUID"); }
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(void) { return refuse("nvmlDeviceGetNvLinkRemoteDeviceType"); }
EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void) { return refuse("nvmlDeviceGetNvLinkRemotePciInfo_v2"); }
EXPORT int nvmlDeviceGetP2PStatus(void) { return refuse("nvmlDeviceGetP2PStatus"); }
EXPORT int nvmlDeviceGetUUID(void) { return refuse("nvmlDeviceGetUUID"); }
