// Between the emulator and its torch library (libweir_emulated_kernels_MAJOR_MINOR.so). Plain C; no CUDA call
// is made while installing. Version 8.
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

// What an op copies between host and device, as Carried in value_reads.h.
enum { WEIR_EMULATED_CARRIES_UNKNOWN, WEIR_EMULATED_CARRIES_INTEGERS, WEIR_EMULATED_CARRIES_FLOATS };

// What an op says of itself (kernels none): its results will be computed; they were; they were not after all.
enum { WEIR_EMULATED_WILL_COMPUTE, WEIR_EMULATED_COMPUTED, WEIR_EMULATED_NOT_COMPUTED };

// The types of operations, as a card has peaks for them.
enum {
  WEIR_EMULATED_FP32,
  WEIR_EMULATED_FP64,
  WEIR_EMULATED_TF32,
  WEIR_EMULATED_BF16,
  WEIR_EMULATED_FP16,
  WEIR_EMULATED_FP8,
  WEIR_EMULATED_INT8
};

// What an op or kernel does, for the virtual clock: bytes of device memory that it reads and writes, and operations.
struct WeirEmulatedWork {
  double bytes, operations;
  int type;  // of the operations
};

struct WeirEmulatedHost {
  int version;                 // 8
  int observe_ops;             // 1: call begin_op and end_op
  int cpu_kernels;             // 1: register CPU versions of the CUDA ops and switch cuDNN off
  void (*count_launch)(void);  // an op ran on the CPU
  void (*set_op)(
      const char* name);  // the op that this thread runs, "" when done; the text outlives the process
  void (*report)(const char* text);  // one report line
  // Kernels cpu: this thread is about to touch these bytes as work of `stream` (a CUstream) named `what`, which outlives the
  // process. Returns 0 when what that work comes after has run, else the driver's error: the stream captures. For the clock,
  // the calls of one op are one kernel that does all of their work; null: the bytes of the accesses.
  int (*run_now)(void* stream, const char* what, const struct WeirEmulatedAccess* accesses, size_t count,
                 const struct WeirEmulatedWork* work);
  // Kernels none: an op of this thread began and has these tensors; it ended with these new ones. Ops nest.
  // `work` is what the op does with its arguments; the bytes of results that are no arguments come on top, `moves` times.
  // They take time if the op launches. `carried`: WEIR_EMULATED_CARRIES_...
  void (*begin_op)(const char* name, const struct WeirEmulatedAccess* accesses, size_t count,
                   const struct WeirEmulatedWork* work, int carried);
  void (*end_op)(const struct WeirEmulatedAccess* results, size_t count, double moves);
  // Kernels cpu: an op of this thread began; `nested`: another op calls it. For its time on the host alone.
  void (*host_op)(int nested);
  // Kernels none. Whether all these bytes are known (known_bytes.h), 1 or 0. They are now, and the op `name`, which this thread
  // runs, has computed its results. From WILL_COMPUTE to its end reads of this thread do not count (value_reads.h).
  // What was queued on `stream` has run when settle returns.
  int (*is_known)(const struct WeirEmulatedAccess* accesses, size_t count);
  void (*computed)(const char* name, const struct WeirEmulatedAccess* accesses, size_t count);
  void (*computes)(int what);  // WEIR_EMULATED_WILL_COMPUTE and the two after it
  void (*settle)(void* stream);
  // Kernels none. Host memory that `op` would have filled with random numbers; has become zeros; was skipped as a whole, 1 or 0
  // (skipped_host.h).
  void (*skip)(const char* op, uintptr_t begin, size_t size);
  void (*zero)(uintptr_t begin, size_t size);
  int (*is_skipped)(uintptr_t begin, size_t size);
  // A training step of this thread ended; `name` tells which kind, the clock counts those of the first kind it meets.
  void (*end_step)(const char* name);
};

// Exported by the torch library as `weir_emulated_install`, and as `weir_emulated_import` for what must be in place before
// CUDA starts, while torch is imported. 0 when done.
typedef int (*WeirEmulatedInstall)(const struct WeirEmulatedHost* host);

#endif
