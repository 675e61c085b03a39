// The processes of the same `weir run` that use a card.
#include "nvml.h"

enum { kMostProcesses = 256 };

struct process_v1 {  // nvmlProcessInfo_v1_t
  unsigned pid;
  unsigned long long bytes;
};
struct process_v2 {  // nvmlProcessInfo_v2_t, and nvmlProcessInfo_t
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};

// Reads the list and how long it is. kInsufficientSize, with `count` what is needed, when it has no room for all.
static int read_list(void* handle, unsigned* count, const void* infos, struct WeirEmulatedProcess* list) {
  struct WeirEmulatedCard card;
  const int known = weir_card(handle, &card);
  if (known != kSuccess) return known;
  if (count == NULL || (infos == NULL && *count != 0)) return kInvalidArgument;
  const unsigned found = (unsigned)weir_processes(handle, list, kMostProcesses);
  const unsigned room = *count;
  *count = found;
  return found <= room ? kSuccess : kInsufficientSize;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses(void* handle, unsigned* count, struct process_v1* infos) {
  struct WeirEmulatedProcess list[kMostProcesses];
  const int status = read_list(handle, count, infos, list);
  if (status != kSuccess) return status;
  for (unsigned i = 0; i < *count; ++i) infos[i] = (struct process_v1){(unsigned)list[i].pid, list[i].bytes};
  return kSuccess;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, struct process_v2* infos) {
  struct WeirEmulatedProcess list[kMostProcesses];
  const int status = read_list(handle, count, infos, list);
  if (status != kSuccess) return status;
  for (unsigned i = 0; i < *count; ++i) {  // no MIG: instances are all ones
    infos[i] = (struct process_v2){(unsigned)list[i].pid, list[i].bytes, ~0u, ~0u};
  }
  return kSuccess;
}
EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(void* handle, unsigned* count, struct process_v2* infos) {
  return nvmlDeviceGetComputeRunningProcesses_v3(handle, count, infos);
}

static int no_processes(void* handle, unsigned* count) {
  struct WeirEmulatedCard card;
  const int known = weir_card(handle, &card);
  if (known != kSuccess) return known;
  if (count == NULL) return kInvalidArgument;
  *count = 0;
  return kSuccess;
}
EXPORT int nvmlDeviceGetGraphicsRunningProcesses(void* handle, unsigned* count) { return no_processes(handle, count); }
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v2(void* handle, unsigned* count) { return no_processes(handle, count); }
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void* handle, unsigned* count) { return no_processes(handle, count); }
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses(void* handle, unsigned* count) { return no_processes(handle, count); }
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v2(void* handle, unsigned* count) { return no_processes(handle, count); }
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(void* handle, unsigned* count) { return no_processes(handle, count); }
