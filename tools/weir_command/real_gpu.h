// Whether this machine has a GPU that a job could use.
#ifndef WEIR_TOOLS_WEIR_COMMAND_REAL_GPU_H_
#define WEIR_TOOLS_WEIR_COMMAND_REAL_GPU_H_

#include <string>

namespace weir {

// Empty if the NVIDIA driver is there and shows a device; else what is wrong, in a few words. No context is
// created.
std::string WhyNoRealGpu();

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_REAL_GPU_H_
