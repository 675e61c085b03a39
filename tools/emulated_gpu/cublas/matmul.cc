// cuBLASLt: descriptors, the algorithm question and the product. A product is a launch.
#pragma GCC visibility push(default)
#include <cublasLt.h>
#pragma GCC visibility pop

#include <cstring>

#include "tools/emulated_gpu/device/launches.h"
#include "tools/emulated_gpu/device/lifecycle.h"
#include "tools/emulated_gpu/device/streams.h"

using namespace weir::emulated;

namespace {

// Descriptors are plain memory; nothing here reads them yet.
template <typename Descriptor>
cublasStatus_t Create(Descriptor** descriptor) {
  if (descriptor == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *descriptor = new Descriptor{};
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Descriptor>
cublasStatus_t Destroy(Descriptor* descriptor) {
  delete descriptor;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t Set(const void* descriptor, const void* value) {
  return descriptor == nullptr || value == nullptr ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr || UsePrimary() != CUDA_SUCCESS) return CUBLAS_STATUS_NOT_INITIALIZED;
  static char room[64];
  *handle = reinterpret_cast<cublasLtHandle_t>(room);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* descriptor, cublasComputeType_t,
                                        cudaDataType_t) {
  return Create(descriptor);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor) { return Destroy(descriptor); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t,
                                              const void* value, size_t) {
  return Set(descriptor, value);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType, uint64_t, uint64_t,
                                          int64_t) {
  return Create(layout);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return Destroy(layout); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t, const void* value, size_t) {
  return Set(layout, value);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return Create(preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return Destroy(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t, const void* value,
                                                    size_t) {
  return Set(preference, value);
}

// One algorithm that needs no workspace.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  if (wanted < 1 || results == nullptr || count == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  std::memset(&results[0], 0, sizeof results[0]);
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1.0f;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*,
                              cublasLtMatrixLayout_t, const void*, cublasLtMatrixLayout_t, const void*,
                              const void*, cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t stream) {
  if (FindStream(stream, "cublasLtMatmul") == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  return LaunchLibraryCall("cublasLtMatmul") == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS
                                                             : CUBLAS_STATUS_NOT_SUPPORTED;
}
}
