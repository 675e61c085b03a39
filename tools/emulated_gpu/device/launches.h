// Kernel launches. With kernels `none` a launch is checked and counted, and does nothing. With kernels `cpu`
// ops run on the CPU and never come here: a launch is an error by the kernel's name.
#ifndef WEIR_EMULATED_GPU_DEVICE_LAUNCHES_H_
#define WEIR_EMULATED_GPU_DEVICE_LAUNCHES_H_

#include <cstddef>
#include <string>

#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

struct Shape {
  unsigned grid[3], block[3];
  size_t shared_bytes;
};

// INVALID_VALUE when the shape is not launchable on this device. `name` is asked for only on errors.
Status Launch(const Shape& shape, CUstream stream, std::string (*name)(const void*), const void* function);

// Blocks of `block_size` threads with `shared` bytes that fit one multiprocessor, registers aside.
int BlocksPerMultiprocessor(int block_size, size_t shared);

// A cuBLAS call: as a launch, by its own name.
Status LaunchLibraryCall(const char* name);

// Demangled name of the kernel behind a host stub that `import` registered.
std::string RegisteredKernelName(const void* host);

}  // namespace weir::emulated

#endif
