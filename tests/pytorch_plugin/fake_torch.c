/* Stand-ins for torch's libraries and the CUDA runtime: enough for the loader to look at.
 * Built as libtorch_cpu.so (FAKE_VERSION: aoti_torch_abi_version), libc10_cuda.so and libtorch_cuda.so
 * (empty), libcudart.so.13 (FAKE_CUDART). */
#include <stdint.h>

#ifdef FAKE_VERSION
uint64_t aoti_torch_abi_version(void) { return (uint64_t)FAKE_VERSION; }
#endif
#ifdef FAKE_CUDART
int cudaGetDeviceCount(int* count) {
  *count = 1;
  return 0;
}
#endif
int weir_fake_torch_unused;
