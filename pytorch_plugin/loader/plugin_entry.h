/* What the loader (C, libc only) and the plugins agree on. */
#ifndef WEIR_PYTORCH_PLUGIN_LOADER_PLUGIN_ENTRY_H_
#define WEIR_PYTORCH_PLUGIN_LOADER_PLUGIN_ENTRY_H_

/* Exit code "Weir unavailable" of every command of ours. */
#define WEIR_EXIT_UNAVAILABLE 4
/* cudaErrorNoDevice. */
#define WEIR_CUDA_ERROR_NO_DEVICE 100

enum {
  WEIR_LOAD_AS_ALLOCATOR = 0, /* observer, list ops, and torch's allocator */
  WEIR_LOAD_FOR_PLUGGABLE = 1 /* observer and list ops; the job itself names weir_malloc as the allocator */
};

/* Exported by every plugin:
 *   int   weir_plugin_load(int mode);      0 = in place; else it has logged why not, once per process
 *   void* weir_plugin_malloc(ssize_t size, int device, void* stream);   throws c10::OutOfMemoryError
 *   void  weir_plugin_free(void* address, ssize_t size, int device, void* stream);
 *   void  weir_plugin_memory_info(int device, size_t* free, size_t* total);   what the job is told: changes both, or nothing
 */
#endif /* WEIR_PYTORCH_PLUGIN_LOADER_PLUGIN_ENTRY_H_ */
