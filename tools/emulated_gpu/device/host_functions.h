// The thread that runs host functions in order. Started by the first one. Any thread may call.
#ifndef WEIR_EMULATED_GPU_DEVICE_HOST_FUNCTIONS_H_
#define WEIR_EMULATED_GPU_DEVICE_HOST_FUNCTIONS_H_

#include <cstdint>

namespace weir::emulated {

// Number of this function, counted from 1.
uint64_t EnqueueHostFunction(void (*function)(void*), void* argument);
bool HostFunctionDone(uint64_t number);
void WaitForHostFunction(uint64_t number);
uint64_t LastHostFunction();

}  // namespace weir::emulated

#endif
