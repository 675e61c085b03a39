// cuBLAS handles and their settings.
#include <mutex>
#include <set>

#include "tools/emulated_gpu/cublas/matrices.h"
#include "tools/emulated_gpu/device/lifecycle.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/streams.h"

using namespace weir::emulated;

namespace {

struct Handle {
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
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

namespace weir::emulated {

bool PlaceOfHandle(cublasHandle_t opaque, const char* call, CUstream* stream, Matrix* workspace) {
  const Handle* handle = Find(opaque, call);
  if (handle == nullptr) return false;
  *stream = handle->stream;
  *workspace = Workspace(handle->workspace, handle->workspace_bytes);
  return true;
}

bool AllowsTf32(cublasHandle_t opaque) {
  const Handle* handle = Find(opaque, "cuBLAS product");
  return handle != nullptr && (handle->math & 0xf) == CUBLAS_TF32_TENSOR_OP_MATH;
}

}  // namespace weir::emulated

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
  handle->workspace = nullptr;  // documented: back to the library's own
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t opaque, void* workspace, size_t bytes) {
  Handle* handle = Find(opaque, "cublasSetWorkspace");
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  // Documented: the address must be 256-byte aligned.
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
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
