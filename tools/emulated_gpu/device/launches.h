// Kernel launches. With kernels `none` a launch is checked and counted, and does nothing. With kernels `cpu`
// ops run on the CPU and never come here: a launch is an error by the kernel's name.
#ifndef WEIR_EMULATED_GPU_DEVICE_LAUNCHES_H_
#define WEIR_EMULATED_GPU_DEVICE_LAUNCHES_H_

#include <cstddef>

#include "tools/emulated_gpu/device/kernels.h"
#include "tools/emulated_gpu/device/launch_arguments.h"
#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

struct Shape {
  unsigned grid[3], block[3];
  size_t shared_bytes;
};

// INVALID_VALUE when the shape is not launchable on this device.
Status Launch(const Shape& shape, CUstream stream, const Kernel& kernel, const Arguments& arguments);

// Blocks of `block_size` threads with `shared` bytes that fit one multiprocessor, registers aside.
int BlocksPerMultiprocessor(int block_size, size_t shared);

// A cuBLAS call: counted as a launch, by its own name.
Status LaunchLibraryCall(const char* name);

// The same for one whose memory nobody looks at.
Status LaunchUnknownLibraryCall(const char* name);

}  // namespace weir::emulated

#endif
