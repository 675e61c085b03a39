// The driver double: what its files share. Entry points are exported with C linkage and the names of cuda.h.
#ifndef WEIR_EMULATED_GPU_DRIVER_DRIVER_H_
#define WEIR_EMULATED_GPU_DRIVER_DRIVER_H_

#include "tools/emulated_gpu/device/fault_points.h"
#include "tools/emulated_gpu/device/lifecycle.h"
#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

// Address of the newest version of `name` ("cuMemAlloc" gives cuMemAlloc_v2), null when cuda.h has no such
// name. A function that is not emulated is found too, and fails by name when it is called.
void* FindDriverFunction(const char* name);

}  // namespace weir::emulated

#define WEIR_DRIVER_NEEDS_INIT()                      \
  do {                                                \
    const CUresult ready = ::weir::emulated::Ready(); \
    if (ready != CUDA_SUCCESS) return ready;          \
    WEIR_DRIVER_FAULT_POINT();                        \
  } while (false)

#define WEIR_DRIVER_NEEDS_CONTEXT()                         \
  do {                                                      \
    const CUresult ready = ::weir::emulated::NeedContext(); \
    if (ready != CUDA_SUCCESS) return ready;                \
    WEIR_DRIVER_FAULT_POINT();                              \
  } while (false)

#endif
