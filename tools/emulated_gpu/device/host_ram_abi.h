// The RAM of the emulated host: a function that libcuda.so.1 exports. Plain C. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_HOST_RAM_ABI_H_
#define WEIR_EMULATED_GPU_DEVICE_HOST_RAM_ABI_H_

#include <stdint.h>

// `weir_emulated_host_ram`: bytes, of the profile; 0 where this machine's RAM is what there is (kernels `cpu`).
typedef uint64_t (*WeirEmulatedHostRam)(void);

#endif
