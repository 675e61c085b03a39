// Between the emulator and its torch library (libweir_emulated_kernels_MAJOR_MINOR.so). Plain C; no CUDA call
// is made while installing. Version 2.
#ifndef WEIR_EMULATED_GPU_DEVICE_TORCH_ABI_H_
#define WEIR_EMULATED_GPU_DEVICE_TORCH_ABI_H_

#include <stddef.h>
#include <stdint.h>

enum { WEIR_EMULATED_READ, WEIR_EMULATED_WRITE, WEIR_EMULATED_UNKNOWN };  // as Use in order.h

// As Access in order.h. Bytes.
struct WeirEmulatedAccess {
  uintptr_t begin;
  size_t size;
  int use;
  size_t pitch, rows;
  int tensor;  // accesses of one tensor have one number
  int alone;   // 1: it is the only access of its tensor
};

struct WeirEmulatedHost {
  int version;                 // 2
  int observe_ops;             // 1: call begin_op and end_op
  int cpu_kernels;             // 1: register CPU versions of the CUDA ops; 0: only switch cuDNN off
  void (*count_launch)(void);  // an op ran on the CPU
  void (*set_op)(
      const char* name);  // the op that this thread runs, "" when done; the text outlives the process
  void (*report)(const char* text);  // one report line
  // Kernels cpu: this thread is about to touch these bytes as work of `stream` (a CUstream) named `what`, which outlives the
  // process. Returns when what that work comes after has run.
  void (*run_now)(void* stream, const char* what, const struct WeirEmulatedAccess* accesses, size_t count);
  // Kernels none: an op of this thread began and has these tensors; it ended with these new ones. Ops nest.
  void (*begin_op)(const char* name, const struct WeirEmulatedAccess* accesses, size_t count);
  void (*end_op)(const struct WeirEmulatedAccess* results, size_t count);
};

// Exported by the torch library as `weir_emulated_install`. 0 when done.
typedef int (*WeirEmulatedInstall)(const struct WeirEmulatedHost* host);

#endif
