// What a driver library shows: NVIDIA's, or the emulated GPU's in its place. Nothing is left behind: no context is created.
#ifndef WEIR_TOOLS_WEIR_COMMAND_REAL_GPU_H_
#define WEIR_TOOLS_WEIR_COMMAND_REAL_GPU_H_

#include <optional>
#include <string>
#include <vector>

#include "allocator/base/units.h"

namespace weir {

struct DeviceFound {
  std::string name;
  Bytes total;
  std::string capability;           // "90"; empty if it does not say
  bool has_virtual_memory = false;  // the attribute of virtual memory management
  bool is_prohibited = false;       // compute mode: no process may use it
};

struct DriverFound {
  std::string problem;  // empty if there is a device; else what is wrong, in a few words
  std::string cuda;     // the newest CUDA that the driver serves, "13.0"; empty if it does not say
  std::vector<DeviceFound> devices;
};

// `library`: a path, or a soname that the loader finds.
DriverFound LookAtDriver(const std::string& library);

// Empty if this machine has a GPU that a job could use; else what is wrong.
std::string WhyNoRealGpu();

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_REAL_GPU_H_
