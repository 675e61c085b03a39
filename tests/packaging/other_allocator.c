/* Somebody else's allocator for torch's CUDAPluggableAllocator: cudaMalloc and cudaFree. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/types.h>

void* other_malloc(ssize_t size, int device, void* stream) {
  int (*allocate)(void**, size_t) = (int (*)(void**, size_t))dlsym(RTLD_DEFAULT, "cudaMalloc");
  void* address = NULL;
  (void)device, (void)stream;
  return allocate != NULL && allocate(&address, (size_t)size) == 0 ? address : NULL;
}

void other_free(void* address, ssize_t size, int device, void* stream) {
  int (*release)(void*) = (int (*)(void*))dlsym(RTLD_DEFAULT, "cudaFree");
  (void)size, (void)device, (void)stream;
  if (release != NULL) release(address);
}
