// What the generated stubs call: the name of an entry point that is not emulated.
#include <cublas_v2.h>

#include "tools/emulated_gpu/cudart/cudart.h"
#include "tools/emulated_gpu/device/launches.h"
#include "tools/emulated_gpu/device/reports.h"

using namespace weir::emulated;

extern "C" {

[[gnu::visibility("hidden")]] int weir_refuse_driver(const char* name) {
  NoteNotSupported(name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

[[gnu::visibility("hidden")]] int weir_refuse_cudart(const char* name) { return Refuse(name); }

[[gnu::visibility("hidden")]] int weir_refuse_cublas(const char* name) {
  NoteNotSupported(name);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

// A cuBLAS routine: a launch with kernels `none`, an error by name with kernels `cpu`.
[[gnu::visibility("hidden")]] int weir_compute_cublas(const char* name) {
  return LaunchUnknownLibraryCall(name) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

[[gnu::visibility("hidden")]] int weir_refuse_cudnn(const char* name) {
  NoteNotSupported(name);
  return 3000;  // CUDNN_STATUS_NOT_SUPPORTED, cudnn_graph.h
}

// The profiler's interface: torch.profiler goes on with what the CPU side sees.
[[gnu::visibility("hidden")]] int weir_refuse_cupti(const char* name) {
  NoteNotSupported(name);
  return 27;  // CUPTI_ERROR_NOT_SUPPORTED, cupti_result.h
}

// Named by torch in the lines that it prints about the refusals.
[[gnu::visibility("default")]] int cuptiGetResultString(int, const char** text) {
  *text = "not emulated";
  return 0;
}
}
