// The cudart double: what its files share. Entry points are exported with C linkage and the names of the
// runtime.
#ifndef WEIR_EMULATED_GPU_CUDART_CUDART_H_
#define WEIR_EMULATED_GPU_CUDART_CUDART_H_

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#include "tools/emulated_gpu/device/fault_points.h"
#include "tools/emulated_gpu/device/lifecycle.h"
#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

// Keeps `error` as this thread's last error unless it is success, and returns it.
cudaError_t Last(cudaError_t error);
inline cudaError_t Last(Status status) { return Last(static_cast<cudaError_t>(status)); }

// An entry point that the emulator refuses: NOT_SUPPORTED, with one line by name. For the generated stubs.
cudaError_t Refuse(const char* name);

}  // namespace weir::emulated

#define WEIR_CUDART_FAULT_POINT()                                                 \
  do {                                                                            \
    if (!::weir::emulated::FaultsPlanned()) break;                                \
    const ::weir::emulated::Status fault = ::weir::emulated::NextFault(__func__); \
    if (fault != CUDA_SUCCESS) return ::weir::emulated::Last(fault);              \
  } while (false)

// Every call that needs a device starts the emulator, makes the primary context current and passes on sticky
// errors.
#define WEIR_CUDART_NEEDS_CONTEXT()                                        \
  do {                                                                     \
    const ::weir::emulated::Status ready = ::weir::emulated::UsePrimary(); \
    if (ready != CUDA_SUCCESS) return ::weir::emulated::Last(ready);       \
    WEIR_CUDART_FAULT_POINT();                                             \
  } while (false)

#endif
