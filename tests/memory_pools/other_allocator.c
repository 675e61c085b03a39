// An allocator of the job's own, for MemPool(allocator): cudaMalloc with a count of what it has handed out.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

int64_t other_allocations, other_frees, other_bytes;
int64_t other_refuses;  // the next calls give nothing

void* other_malloc(ssize_t size, int device, void* stream) {
  int (*cuda_malloc)(void**, size_t) = (int (*)(void**, size_t))dlsym(RTLD_DEFAULT, "cudaMalloc");
  void* address = NULL;
  (void)device, (void)stream;
  if (other_refuses > 0) {
    --other_refuses;
    return NULL;
  }
  if (cuda_malloc == NULL || cuda_malloc(&address, (size_t)size) != 0) return NULL;
  ++other_allocations;
  other_bytes += size;
  return address;
}

void other_free(void* address, ssize_t size, int device, void* stream) {
  int (*cuda_free)(void*) = (int (*)(void*))dlsym(RTLD_DEFAULT, "cudaFree");
  (void)device, (void)stream;
  if (cuda_free != NULL && cuda_free(address) == 0) {
    ++other_frees;
    other_bytes -= size;
  }
}
