// What tests ask the emulator: `weir_emulated_counters`, exported by libcuda.so.1. Plain C. Bytes of device
// memory.
#ifndef WEIR_EMULATED_GPU_DEVICE_COUNTERS_ABI_H_
#define WEIR_EMULATED_GPU_DEVICE_COUNTERS_ABI_H_

#include <stdint.h>

struct WeirEmulatedCounters {
  uint64_t launches, copies, copied_bytes, reports;
  uint64_t used_bytes, peak_bytes, total_bytes;
  uint64_t unchecked_launches;  // of kernels whose parameters are not known
};

typedef void (*WeirEmulatedReadCounters)(struct WeirEmulatedCounters* counters);

#endif
