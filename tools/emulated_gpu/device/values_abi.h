// Whether what a run with kernels `none` tells about memory and time is exact: a function that libcuda.so.1 exports. Plain C.
// Any thread, without locks of the emulator.
#ifndef WEIR_EMULATED_GPU_DEVICE_VALUES_ABI_H_
#define WEIR_EMULATED_GPU_DEVICE_VALUES_ABI_H_

#include <stdint.h>

// As Verdict in value_reads.h.
enum {
  WEIR_EMULATED_EXACT,
  WEIR_EMULATED_EXACT_UNLESS_FLOATS_DECIDE,  // the program read floats that were not computed: 0 was given
  WEIR_EMULATED_ESTIMATE                     // it read integers, booleans or sizes that were not computed
};

// One place of the program that read values that were not computed.
struct WeirEmulatedValueRead {
  const char* op;     // of torch, "" if none
  const char* place;  // "train.py:31", or "function (library)" where no Python code is
  int floats;         // 1: floating-point values; they do not make an estimate
  uint64_t times, bytes;
};

// `weir_emulated_values`: calls `each` (if not null) for every place, the texts live during the call; returns one of the
// values above. With kernels `cpu` everything is computed: exact.
typedef int (*WeirEmulatedValues)(void (*each)(const struct WeirEmulatedValueRead* read, void* context),
                                  void* context);

#endif
