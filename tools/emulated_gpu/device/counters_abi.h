// What tests ask the emulator: `weir_emulated_counters` and others, exported by libcuda.so.1. Plain C. Bytes of
// device memory.
#ifndef WEIR_EMULATED_GPU_DEVICE_COUNTERS_ABI_H_
#define WEIR_EMULATED_GPU_DEVICE_COUNTERS_ABI_H_

#include <stdint.h>

#include "tools/emulated_gpu/device/torch_abi.h"

struct WeirEmulatedCounters {
  uint64_t launches, copies, copied_bytes, reports;
  uint64_t used_bytes, peak_bytes, total_bytes;
  uint64_t unchecked_launches;                      // of kernels whose parameters are not known
  uint64_t live_streams, live_events, live_frames;  // that nobody destroyed or released yet
};

typedef void (*WeirEmulatedReadCounters)(struct WeirEmulatedCounters* counters);

// `weir_emulated_test_kernel`: the caller is about to be a kernel of `stream` with these accesses, as WeirEmulatedHost's
// run_now. `weir_emulated_reseed`: WEIR_EMULATED_SEED from now on.
typedef void (*WeirEmulatedTestKernel)(void* stream, const char* what,
                                       const struct WeirEmulatedAccess* accesses, size_t count);
typedef void (*WeirEmulatedReseed)(uint64_t seed);

#endif
