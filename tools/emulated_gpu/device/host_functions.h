// The thread that runs host functions in order. Any thread may call.
#ifndef WEIR_EMULATED_GPU_DEVICE_HOST_FUNCTIONS_H_
#define WEIR_EMULATED_GPU_DEVICE_HOST_FUNCTIONS_H_

#include <cstdint>

namespace weir::emulated {

// Once, by the first host function. The thread calls `look` whenever it had nothing to do for some 100 ms.
void StartHostFunctionThread(void (*look)());

// Number of this function, counted from 1.
uint64_t EnqueueHostFunction(void (*function)(void*), void* argument);
bool HostFunctionDone(uint64_t number);
void WaitForHostFunction(uint64_t number);

}  // namespace weir::emulated

#endif
