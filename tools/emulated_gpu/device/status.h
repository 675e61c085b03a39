// Error codes inside the emulator are the driver's. Every code used here has the same number in cudart
// (success 0, invalid value 1, out of memory 2, not initialised 3, invalid device 101, invalid context 201,
// invalid handle 400, not found 500, not ready 600, illegal address 700, registered 712/713, not supported
// 801), so one value serves both doubles; cudart-only codes are made in cudart/.
#ifndef WEIR_EMULATED_GPU_DEVICE_STATUS_H_
#define WEIR_EMULATED_GPU_DEVICE_STATUS_H_

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

namespace weir::emulated {
using Status = CUresult;
}

#endif
