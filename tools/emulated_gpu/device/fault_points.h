// Where planned failures happen: at the head of every entry point, before it did anything. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_FAULT_POINTS_H_
#define WEIR_EMULATED_GPU_DEVICE_FAULT_POINTS_H_

#include <cstddef>

#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

// Why the plan cannot be used; "" if it can, or there is none.
const char* FaultsMistake();
// Whether there is a plan. One load.
bool FaultsPlanned();
// What this call of `entry_point` returns: CUDA_SUCCESS means that it goes on.
Status NextFault(const char* entry_point);

// What the plan makes of the device's memory: bytes that can be had, and what the memory questions answer.
size_t DeviceCapacity();
void ReportedMemory(size_t* free, size_t* total);

// The exit handler has run.
void FaultsAtExit();

}  // namespace weir::emulated

#define WEIR_DRIVER_FAULT_POINT()                                                 \
  do {                                                                            \
    if (!::weir::emulated::FaultsPlanned()) break;                                \
    const ::weir::emulated::Status fault = ::weir::emulated::NextFault(__func__); \
    if (fault != CUDA_SUCCESS) return fault;                                      \
  } while (false)

#endif
