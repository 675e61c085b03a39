// What CUDA code registers from static initialisers, during `import torch`. The names of the kernels and the device variables
// are kept, so that a launch can be named and a variable can be given memory. With kernels `cpu` nothing is loaded here; with
// kernels `none` the emulator learns that torch's CUDA library is being loaded, when its CPU library is ready.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "preload.h"

typedef struct {
  const void* host;   // address of the host stub or of the host shadow variable
  const char* name;   // mangled device name; lives in the registering library
  size_t size;        // bytes of a variable; 0 for a kernel
  const void* image;  // what the kernel's fat binary was registered with
} registered;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static registered* table;
static size_t count, room;

#define EXPORT __attribute__((visibility("default")))

static void keep(void** handle, const void* host, const char* name, size_t size) {
  pthread_mutex_lock(&lock);
  if (count == room) {
    size_t wanted = room == 0 ? 4096 : room * 2;
    registered* grown = realloc(table, wanted * sizeof *grown);
    if (grown == NULL) {
      pthread_mutex_unlock(&lock);
      return;
    }
    table = grown;
    room = wanted;
  }
  table[count++] = (registered){host, name, size, handle == NULL ? NULL : *handle};
  pthread_mutex_unlock(&lock);
}

// Name (mangled) of the kernel or variable that was registered with this host address, or null; the bytes of the
// variable; the image (fat binary wrapper) that holds the kernel. For the emulator.
EXPORT const char* weir_emulated_registered_name(const void* host, size_t* size, const void** image) {
  const char* name = NULL;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < count && name == NULL; ++i) {
    if (table[i].host != host) continue;
    name = table[i].name;
    if (size != NULL) *size = table[i].size;
    if (image != NULL) *image = table[i].image;
  }
  pthread_mutex_unlock(&lock);
  return name;
}

// A handle is the address of a cell that holds the image. Null without memory: its kernels have no known image.
EXPORT void** __cudaRegisterFatBinary(void* image) {
  if (weir_emulation_wanted()) {
    void** handle = malloc(sizeof *handle);
    if (handle != NULL) *handle = image;
    return handle;
  }
  return ((void** (*)(void*))weir_entry_point("__cudaRegisterFatBinary"))(image);
}

static void tell_of_torch(void* caller) {
  static int told;
  Dl_info from;
  const char* kernels = getenv("WEIR_KERNELS");
  if (told || kernels == NULL || strcmp(kernels, "none") != 0) return;
  if (dladdr(caller, &from) == 0 || from.dli_fname == NULL ||
      strstr(from.dli_fname, "libtorch_cuda.so") == NULL)
    return;
  told = 1;
  ((void (*)(void))weir_entry_point("weir_emulated_torch_imported"))();
}

EXPORT void __cudaRegisterFatBinaryEnd(void** handle) {
  if (weir_emulation_wanted()) {
    tell_of_torch(__builtin_return_address(0));
    return;
  }
  ((void (*)(void**))weir_entry_point("__cudaRegisterFatBinaryEnd"))(handle);
}

EXPORT void __cudaUnregisterFatBinary(void** handle) {
  if (weir_emulation_wanted()) {
    free(handle);
    return;
  }
  ((void (*)(void**))weir_entry_point("__cudaUnregisterFatBinary"))(handle);
}

// Before a managed variable is used (torch 2.11): not 0 is done.
EXPORT char __cudaInitModule(void** handle) {
  if (weir_emulation_wanted()) return 1;
  return ((char (*)(void**))weir_entry_point("__cudaInitModule"))(handle);
}

EXPORT void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                                   int threads, void* tid, void* bid, void* block, void* grid, int* warp) {
  if (weir_emulation_wanted()) {
    keep(handle, host, name, 0);
    return;
  }
  typedef void (*real)(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);
  ((real)weir_entry_point("__cudaRegisterFunction"))(handle, host, device, name, threads, tid, bid, block,
                                                     grid, warp);
}

EXPORT void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int external,
                              size_t size, int constant, int global) {
  if (weir_emulation_wanted()) {
    keep(handle, host, name, size);
    return;
  }
  typedef void (*real)(void**, char*, char*, const char*, int, size_t, int, int);
  ((real)weir_entry_point("__cudaRegisterVar"))(handle, host, device, name, external, size, constant, global);
}
