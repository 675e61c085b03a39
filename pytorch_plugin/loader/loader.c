/* libweir_preload.so: brings Weir into a process at its first use of CUDA.
 *
 * Links libc and nothing else, so that it can be LD_PRELOADed into any program. It stays inert until the
 * process asks for the number of CUDA devices: `cudaGetDeviceCount` is interposed, the real one is called
 * first (an emulated GPU registers its kernels there), then, once, the plugin for the torch that is loaded is
 * opened. Loaded by ctypes (torch.cuda.memory.CUDAPluggableAllocator), it opens the plugin from its
 * constructor instead; loaded by the Python package, when that calls weir_install.
 *
 * Any thread, with or without the GIL. Nothing here fails the job unless WEIR_REQUIRED=1: then exit code 4.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "pytorch_plugin/loader/plugin_entry.h"

#define EXPORT __attribute__((visibility("default")))

typedef int (*DeviceCountFn)(int*);
typedef uint64_t (*TorchVersionFn)(void);
typedef int (*EntryFn)(int);
typedef void* (*MallocFn)(ssize_t, int, void*);
typedef void (*FreeFn)(void*, ssize_t, int, void*);
typedef void (*MemoryInfoFn)(int, size_t*, size_t*);

enum { IDLE = 0, LOADING = 1, DONE = 2 };
static int state = IDLE;         /* atomic; moves only forward, except LOADING -> DONE in a forked child */
static pthread_t loading_thread; /* valid while LOADING */
static MallocFn plugin_malloc;
static FreeFn plugin_free;
static MemoryInfoFn plugin_memory_info;

/* One line (none where the plugin has said it), then the job goes on without Weir, unless it must not. */
static void refuse(const char* text) {
  if (text != NULL) dprintf(STDERR_FILENO, "weir: %s\n", text);
  const char* required = getenv("WEIR_REQUIRED");
  if (required != NULL && strcmp(required, "1") == 0) _exit(WEIR_EXIT_UNAVAILABLE);
}

static int loaded(const char* soname) {
  void* handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == NULL) return 0;
  dlclose(handle);
  return 1;
}

/* Path of `name` beside this library. */
static int beside_me(const char* name, char* path, size_t size) {
  Dl_info me;
  if (dladdr((const void*)&beside_me, &me) == 0 || me.dli_fname == NULL) return 0;
  const char* slash = strrchr(me.dli_fname, '/');
  int folder = slash == NULL ? 0 : (int)(slash - me.dli_fname) + 1;
  int n = snprintf(path, size, "%.*s%s", folder, me.dli_fname, name);
  return n > 0 && (size_t)n < size;
}

static void open_plugin(int major, int minor, int mode) {
  char name[64], path[PATH_MAX], text[PATH_MAX + 256];
  snprintf(name, sizeof name, "libweir_torch_%d_%d.so", major, minor);
  if (!beside_me(name, path, sizeof path) || access(path, R_OK) != 0) {
    snprintf(text, sizeof text,
             "torch %d.%d is not supported: the job runs without Weir (works with torch %s)", major, minor,
             WEIR_TORCH_VERSIONS);
    refuse(text);
    return;
  }
  void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EntryFn entry = plugin == NULL ? NULL : (EntryFn)dlsym(plugin, "weir_plugin_load");
  if (entry == NULL) {
    snprintf(text, sizeof text, "cannot load the plugin, the job runs without Weir: %s", dlerror());
    refuse(text);
    return;
  }
  if (entry(mode) != 0) { /* it has said why */
    refuse(NULL);
    return;
  }
  plugin_malloc = (MallocFn)dlsym(plugin, "weir_plugin_malloc");
  plugin_free = (FreeFn)dlsym(plugin, "weir_plugin_free");
  plugin_memory_info = (MemoryInfoFn)dlsym(plugin, "weir_plugin_memory_info");
}

/* `mode`: see plugin_entry.h. Returns without a word when there is no torch in the process. */
static void load_for_torch(int mode) {
  void* torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (torch == NULL) return;
  TorchVersionFn version_of = (TorchVersionFn)dlsym(torch, "aoti_torch_abi_version");
  if (!loaded("libc10_cuda.so") || !loaded("libtorch_cuda.so")) {
    refuse(
        "this torch is a CPU-only build: the job runs without Weir (works with CUDA builds of "
        "torch " WEIR_TORCH_VERSIONS ")");
  } else if (version_of == NULL) {
    refuse(
        "this torch does not tell its version: the job runs without Weir (works with "
        "torch " WEIR_TORCH_VERSIONS ")");
  } else {
    uint64_t version = version_of();
    open_plugin((int)(version >> 56), (int)(version >> 48 & 0xff), mode);
  }
  dlclose(torch);
}

static int disabled(void) {
  const char* value = getenv("WEIR_DISABLE");
  return value != NULL && strcmp(value, "1") == 0;
}

/* A thread that waits for the loading thread gives the GIL away, which the loading thread may need. */
static void wait_until_loaded(void) {
  int (*holds_gil)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Check");
  void* (*give)(void) = (void* (*)(void))dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
  void (*take)(void*) = (void (*)(void*))dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
  void* (*thread)(void) = (void* (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
  int release =
      holds_gil != NULL && give != NULL && take != NULL && thread != NULL && thread() != NULL && holds_gil();
  void* token = release ? give() : NULL;
  while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == LOADING) sched_yield();
  if (token != NULL) take(token);
}

/* Once per process; a caller that comes while another thread loads waits for it, the loading thread itself
 * does not (the plugin asks for devices too). */
static void load_once(int mode) {
  if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == DONE) return;
  if (!loaded("libtorch_cpu.so")) return; /* somebody else's use of CUDA; torch may come later */
  int idle = IDLE;
  if (__atomic_compare_exchange_n(&state, &idle, LOADING, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    loading_thread = pthread_self();
    if (!disabled()) load_for_torch(mode);
    __atomic_store_n(&state, DONE, __ATOMIC_RELEASE);
  } else if (idle == LOADING && !pthread_equal(loading_thread, pthread_self())) {
    wait_until_loaded();
  }
}

/* A child forked while another thread was loading has half a plugin: it never gets a whole one. */
static void after_fork_in_child(void) {
  int loading = LOADING;
  __atomic_compare_exchange_n(&state, &loading, DONE, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* The runtime's own function (or an emulated GPU's), never ours. */
static void* next_symbol(const char* name) {
  void* symbol = dlsym(RTLD_NEXT, name);
  if (symbol != NULL) return symbol;
  const int of_driver = strncmp(name, "cuda", 4) != 0;
  void* library = dlopen(of_driver ? "libcuda.so.1" : "libcudart.so.13", RTLD_LAZY | RTLD_NOLOAD);
  return library == NULL ? NULL : dlsym(library, name);
}

EXPORT int cudaGetDeviceCount(int* count) {
  DeviceCountFn next = (DeviceCountFn)next_symbol("cudaGetDeviceCount");
  if (next == NULL) {
    if (count != NULL) *count = 0;
    return WEIR_CUDA_ERROR_NO_DEVICE;
  }
  int result = next(count);
  if (result == 0) load_once(WEIR_LOAD_AS_ALLOCATOR);
  return result;
}

/* ---- the memory that the device has, as the job is told (WEIR_SHOW) ---- */

typedef int (*MemGetInfoFn)(size_t*, size_t*);

static int tell_memory(const char* name, size_t* free_bytes, size_t* total_bytes) {
  MemGetInfoFn next = (MemGetInfoFn)next_symbol(name);
  if (next == NULL) return WEIR_CUDA_ERROR_NO_DEVICE;
  const int result = next(free_bytes, total_bytes);
  int (*get_device)(int*) = (int (*)(int*))next_symbol("cudaGetDevice");
  int device = 0;
  if (result == 0 && plugin_memory_info != NULL && free_bytes != NULL && total_bytes != NULL &&
      get_device != NULL && get_device(&device) == 0) {
    plugin_memory_info(device, free_bytes, total_bytes);
  }
  return result;
}

EXPORT int cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return tell_memory("cudaMemGetInfo", free_bytes, total_bytes);
}

/* For those that link the driver; who asks it by cuGetProcAddress is told of the card. */
EXPORT int cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  return tell_memory("cuMemGetInfo_v2", free_bytes, total_bytes);
}

/* ---- torch.cuda.memory.CUDAPluggableAllocator(path, "weir_malloc", "weir_free")
 * ---------------------------- */

/* Without the plugin (WEIR_DISABLE=1, unknown torch) the pluggable route still has to hand out memory. */
static void* native_malloc(ssize_t size) {
  int (*cuda_malloc)(void**, size_t) = (int (*)(void**, size_t))next_symbol("cudaMalloc");
  void* address = NULL;
  if (cuda_malloc != NULL && cuda_malloc(&address, (size_t)size) == 0) return address;
  dprintf(STDERR_FILENO, "weir: cudaMalloc of %zd bytes failed and Weir is not loaded\n", size);
  abort(); /* torch takes a null pointer for memory */
}

/* Both pass C++ exceptions through (built with -fexceptions): OutOfMemoryError is thrown in the plugin. */
EXPORT void* weir_malloc(ssize_t size, int device, void* stream) {
  if (plugin_malloc != NULL) return plugin_malloc(size, device, stream);
  return native_malloc(size);
}

EXPORT void weir_free(void* address, ssize_t size, int device, void* stream) {
  if (plugin_free != NULL) {
    plugin_free(address, size, device, stream);
    return;
  }
  int (*cuda_free)(void*) = (int (*)(void*))next_symbol("cudaFree");
  if (cuda_free != NULL) cuda_free(address);
}

/* The emulated GPU registers its kernels at the first device count, and they have to be there before Weir
 * takes the computed ones. A real GPU is not asked: that would initialise the driver in a parent that only
 * forks. */
static void wake_emulated_gpu(void) {
  const char* gpu = getenv("WEIR_GPU");
  if (gpu == NULL || strncmp(gpu, "emulated", 8) != 0) return;
  DeviceCountFn count_devices = (DeviceCountFn)dlsym(RTLD_DEFAULT, "cudaGetDeviceCount");
  int count = 0;
  if (count_devices != NULL) count_devices(&count);
}

/* 1: Weir is in place, 0: it has not been asked for yet, -1: it was and is not there (one line has said why). */
EXPORT int weir_installed(void) {
  if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != DONE) return 0;
  return plugin_malloc != NULL ? 1 : -1;
}

/* The way of the Python package (torch_weir): in place as torch's allocator, now. Without torch nothing happens. */
EXPORT int weir_install(void) {
  wake_emulated_gpu();
  load_once(WEIR_LOAD_AS_ALLOCATOR);
  return weir_installed();
}

/* Set by the Python package for as long as it opens this library: it will say how. */
static int opened_to_install(void) { return getenv("WEIR_OPENED_TO_INSTALL") != NULL; }

__attribute__((constructor)) static void on_load(void) {
  pthread_atfork(NULL, NULL, after_fork_in_child);
  if (opened_to_install() || !loaded("libtorch_cpu.so")) return; /* preloaded: the usual case */
  wake_emulated_gpu();
  load_once(WEIR_LOAD_FOR_PLUGGABLE);
}
