// First call of an entry point: finds the emulator (libcuda.so.1 beside this library) or the real library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload.h"

extern void* weir_trampoline_slots[] __attribute__((visibility("hidden")));
extern const char* const weir_trampoline_names[] __attribute__((visibility("hidden")));
extern const int weir_trampoline_count __attribute__((visibility("hidden")));

static pthread_once_t emulator_once = PTHREAD_ONCE_INIT;
static void* emulator;
static int refused;  // then there is no device

int weir_emulation_wanted(void) {
  static int wanted = -1;  // a race decides the same value twice
  if (wanted < 0) {
    const char* gpu = getenv("WEIR_GPU");
    wanted = gpu != NULL && (strcmp(gpu, "emulated") == 0 || strncmp(gpu, "emulated:", 9) == 0);
  }
  return wanted;
}

// Left over in an environment, LD_PRELOAD and WEIR_GPU must not hide a real card: the file that shows it, or NULL. Nothing of
// the driver is loaded.
static const char* real_driver(void) {
  const char* chosen = getenv("WEIR_EMULATED_CHOSEN");
  if (chosen != NULL && strcmp(chosen, "1") == 0) return NULL;
  const char* path = getenv("WEIR_EMULATED_REAL_DRIVER");
  if (path == NULL) path = "/proc/driver/nvidia/version";
  return access(path, F_OK) == 0 ? path : NULL;
}

static int hides_real_driver(void) {
  const char* path = real_driver();
  if (path == NULL) return 0;
  fprintf(stderr,
          "weir: emulated GPU: refused, a real NVIDIA driver is here (%s): use `weir run --gpu emulated "
          "--beside-real-gpu`, or unset "
          "LD_PRELOAD and WEIR_GPU\n",
          path);
  return 1;
}

// A library of the folder in which this one is.
static void* load_beside(const char* name) {
  Dl_info self;
  if (dladdr((void*)&weir_emulation_wanted, &self) == 0 || self.dli_fname == NULL) return NULL;
  const char* slash = strrchr(self.dli_fname, '/');
  char path[4096];
  int folder = slash == NULL ? 0 : (int)(slash - self.dli_fname + 1);
  snprintf(path, sizeof path, "%.*s%s", folder, self.dli_fname, name);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void load_emulator(void) {
  refused = hides_real_driver();
  if (refused) return;
  emulator = load_beside("libcuda.so.1");
  if (emulator == NULL) fprintf(stderr, "weir: emulated GPU: cannot load libcuda.so.1: %s\n", dlerror());
}

// Monitors open NVML by its soname alone, which finds a library that is loaded. It loads nothing more by itself.
__attribute__((constructor)) static void offer_nvml(void) {
  if (weir_emulation_wanted() && real_driver() == NULL) load_beside("libnvidia-ml.so.1");
}

// cudaErrorNotSupported is 801, CUBLAS_STATUS_NOT_SUPPORTED is 15, CUDNN_STATUS_NOT_SUPPORTED is 3000 (driver_types.h,
// cublas_api.h, cudnn_graph.h).
static int no_cuda_entry(void) { return 801; }
static int no_cublas_entry(void) { return 15; }
static int no_cudnn_entry(void) { return 3000; }
static int no_device(void) { return 100; }  // cudaErrorNoDevice

static void* missing(const char* name) {
  const int of_cudart = strncmp(name, "cublas", 6) != 0 && strncmp(name, "cudnn", 5) != 0;
  if (refused && of_cudart) return (void*)&no_device;
  fprintf(stderr, "weir: emulated GPU: %s is not there: NOT_SUPPORTED\n", name);
  if (strncmp(name, "cudnn", 5) == 0) return (void*)&no_cudnn_entry;
  return strncmp(name, "cublas", 6) == 0 ? (void*)&no_cublas_entry : (void*)&no_cuda_entry;
}

// torch is often loaded with RTLD_LOCAL, where RTLD_NEXT does not see its dependencies.
static void* real_entry_point(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found != NULL) return found;
  static const char* const cudart[] = {"libcudart.so.13", "libcudart.so.12", NULL};
  static const char* const cublas[] = {"libcublas.so.13", "libcublas.so.12", NULL};
  static const char* const cublas_lt[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
  static const char* const cudnn[] = {"libcudnn.so.9", NULL};
  static const char* const cupti[] = {"libcupti.so.13", "libcupti.so.12", NULL};
  const char* const* libraries = strncmp(name, "cupti", 5) == 0 ? cupti : cudart;
  if (strncmp(name, "cudnn", 5) == 0) {
    libraries = cudnn;
  } else if (strncmp(name, "cublasLt", 8) == 0) {
    libraries = cublas_lt;
  } else if (strncmp(name, "cublas", 6) == 0) {
    libraries = cublas;
  }
  for (; *libraries != NULL && found == NULL; ++libraries) {
    void* library = dlopen(*libraries, RTLD_NOLOAD | RTLD_LAZY);
    if (library != NULL) found = dlsym(library, name);
  }
  return found;
}

void* weir_entry_point(const char* name) {
  void* found = NULL;
  if (weir_emulation_wanted()) {
    pthread_once(&emulator_once, load_emulator);
    if (emulator != NULL) {
      found = dlsym(emulator, name);
    } else if (strcmp(name, "cudnnGetVersion") == 0 || strcmp(name, "cudnnGetProperty") == 0) {
      found = real_entry_point(name);  // asked without a device
    }
  } else {
    found = real_entry_point(name);
  }
  return found != NULL ? found : missing(name);
}

// Called by the trampolines, with every argument register saved.
__attribute__((visibility("hidden"), used)) void* weir_trampoline_resolve(intptr_t index) {
  void* found = weir_entry_point(weir_trampoline_names[index]);
  __atomic_store_n(&weir_trampoline_slots[index], found, __ATOMIC_RELEASE);
  return found;
}
