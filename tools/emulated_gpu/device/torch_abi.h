// Between the emulator and its torch library (libweir_emulated_kernels_MAJOR_MINOR.so). Plain C; no CUDA call
// is made while installing. Version 1.
#ifndef WEIR_EMULATED_GPU_DEVICE_TORCH_ABI_H_
#define WEIR_EMULATED_GPU_DEVICE_TORCH_ABI_H_

struct WeirEmulatedHost {
  int version;                       // 1
  int cpu_kernels;                   // 1: register CPU versions of the CUDA ops; 0: only switch cuDNN off
  void (*count_launch)(void);        // an op ran on the CPU
  void (*set_op)(const char* name);  // the op that this thread runs, "" when done; the text outlives the op
  void (*report)(const char* text);  // one report line
};

// Exported by the torch library as `weir_emulated_install`. 0 when done.
typedef int (*WeirEmulatedInstall)(const struct WeirEmulatedHost* host);

#endif
