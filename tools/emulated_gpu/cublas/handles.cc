// cuBLAS handles and their settings. The routines themselves are generated: launches by name
// (driver/refusals.cc).
#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

#include <mutex>
#include <set>

#include "tools/emulated_gpu/device/lifecycle.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/streams.h"

using namespace weir::emulated;

namespace {

struct Handle {
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
};

std::mutex mutex;
auto& handles = *new std::set<Handle*>;  // guarded by mutex

Handle* Find(cublasHandle_t opaque, const char* call) {
  auto* handle = reinterpret_cast<Handle*>(opaque);
  std::lock_guard<std::mutex> lock(mutex);
  if (handles.count(handle) != 0) return handle;
  Report("%s: cuBLAS handle %p is not alive", call, static_cast<void*>(opaque));
  return nullptr;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* opaque) {
  if (opaque == nullptr || UsePrimary() != CUDA_SUCCESS) return CUBLAS_STATUS_NOT_INITIALIZED;
  auto* handle = new Handle;
  std::lock_guard<std::mutex> lock(mutex);
  handles.insert(handle);
  *opaque = reinterpret_cast<cublasHandle_t>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t opaque) {
  Handle* handle = Find(opaque, "cublasDestroy");
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  std::lock_guard<std::mutex> lock(mutex);
  handles.erase(handle);
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t opaque, cudaStream_t stream) {
  Handle* handle = Find(opaque, "cublasSetStream");
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (FindStream(stream, "cublasSetStream") == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t opaque, void* workspace, size_t) {
  if (Find(opaque, "cublasSetWorkspace") == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  // Documented: the address must be 256-byte aligned.
  return reinterpret_cast<uintptr_t>(workspace) % 256 == 0 ? CUBLAS_STATUS_SUCCESS
                                                           : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t opaque, cublasMath_t mode) {
  Handle* handle = Find(opaque, "cublasSetMathMode");
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t opaque, cublasMath_t* mode) {
  const Handle* handle = Find(opaque, "cublasGetMathMode");
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  *mode = handle->math;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t opaque, cublasPointerMode_t mode) {
  Handle* handle = Find(opaque, "cublasSetPointerMode");
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->pointers = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t opaque, cublasPointerMode_t* mode) {
  const Handle* handle = Find(opaque, "cublasGetPointerMode");
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  *mode = handle->pointers;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetSmCountTarget(cublasHandle_t opaque, int) {
  return Find(opaque, "cublasSetSmCountTarget") == nullptr ? CUBLAS_STATUS_NOT_INITIALIZED
                                                           : CUBLAS_STATUS_SUCCESS;
}
}
