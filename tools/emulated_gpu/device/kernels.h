// Kernels by the handle that a launch names: a host stub of the runtime, or a function of a module. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_KERNELS_H_
#define WEIR_EMULATED_GPU_DEVICE_KERNELS_H_

#include <string>

#include "tools/emulated_gpu/device/argument_words.h"

namespace weir::emulated {

struct Kernel {
  std::string name;                        // demangled
  const Parameters* parameters = nullptr;  // null: not known, and `unknown` says why
  std::string unknown;
  std::vector<ArgumentWords> words;
};

// The kernel `mangled` of an image whose kernels are in `table`, which the result points into. `unreadable` is what
// ReadKernelImage said of the image.
Kernel DescribeKernel(const char* mangled, const ParameterTable& table, const std::string& unreadable);

// The kernel behind a host stub that a static initialiser registered (preload/registration.c). The first question reads
// its fat binary, milliseconds; later ones are a look-up.
const Kernel& KernelOfHostStub(const void* host);

}  // namespace weir::emulated

#endif
