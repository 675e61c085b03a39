// When the emulated device comes to life in this process and what its state is: first line, exit line, fork,
// sticky errors. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_LIFECYCLE_H_
#define WEIR_EMULATED_GPU_DEVICE_LIFECYCLE_H_

#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

// First use: prints the first line, arranges for the exit line. CUDA_ERROR_NO_DEVICE when the options name no
// device or hide it; CUDA_ERROR_NOT_INITIALIZED in a child forked from a process that used the device.
Status Start();

// What every call must pass: started, not a forked child, no sticky error. Cheap.
Status Ready();

// After an illegal access the context is dead: every later call returns `error`, as on hardware.
void SetSticky(Status error);

// Makes the primary context of device 0 active and current on this thread if none is. For cudart.
Status UsePrimary();
// For driver calls that need a context: INVALID_CONTEXT when this thread has none.
Status NeedContext();

}  // namespace weir::emulated

#endif
