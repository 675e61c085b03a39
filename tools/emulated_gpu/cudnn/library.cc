#include "tools/emulated_gpu/cudnn/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>

#include "tools/emulated_gpu/device/lifecycle.h"
#include "tools/emulated_gpu/device/streams.h"

using namespace weir::emulated;

namespace weir::emulated {
namespace {

auto& handles = *new Live<cudnnContext>("handle");

// The library that the caller was linked with; it answers questions about itself without a device.
template <typename Function>
Function InRealLibrary(const char* name) {
  void* library = dlopen("libcudnn.so.9", RTLD_NOLOAD | RTLD_LAZY);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

struct Dimension {
  int64_t size, stride;
};

}  // namespace

size_t BytesOf(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
      return 8;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
      return 4;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    default:
      return 1;
  }
}

int64_t TensorShape::Elements() const {
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  return elements;
}

size_t TensorShape::SpanBytes() const {
  if (Elements() == 0) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < dims.size(); ++i) last += (dims[i] - 1) * strides[i];
  return static_cast<size_t>(last + 1) * BytesOf(type);
}

Matrix TensorAt(const void* base, const TensorShape& shape, Use use) {
  std::vector<Dimension> dimensions;
  for (size_t i = 0; i < shape.dims.size(); ++i) {
    if (shape.dims[i] == 0) return BytesAt(base, 0, use);
    if (shape.dims[i] > 1 && shape.strides[i] > 0) dimensions.push_back({shape.dims[i], shape.strides[i]});
  }
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  Matrix matrix{base, 1, 1, 1, BytesOf(shape.type), use};
  auto next = dimensions.begin();
  for (; next != dimensions.end() && next->stride <= matrix.rows; ++next) {
    matrix.rows += next->stride * (next->size - 1);
  }
  matrix.ld = matrix.rows;
  if (next != dimensions.end()) {
    matrix.ld = next->stride;
    matrix.cols = next++->size;
  }
  for (; next != dimensions.end() && next->stride == matrix.ld * matrix.cols; ++next)
    matrix.cols *= next->size;
  if (next != dimensions.end()) {
    matrix.stride = next->stride;
    matrix.batch = next++->size;
  }
  return next == dimensions.end() ? matrix : BytesAt(base, shape.SpanBytes(), Use::kUnknown);
}

Matrix BytesAt(const void* base, size_t bytes, Use use) {
  const auto size = static_cast<int64_t>(base == nullptr ? 0 : bytes);
  return {base, size, 1, size, 1, use};
}

cudnnStatus_t Run(const char* call, cudnnHandle_t opaque, const std::vector<Matrix>& memory) {
  const auto handle = handles.Find(opaque, call);
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM;
  switch (ComputeForOp(call, handle->stream, memory.data(), memory.size())) {
    case CUBLAS_STATUS_SUCCESS:
      return CUDNN_STATUS_SUCCESS;
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return CUDNN_STATUS_NOT_SUPPORTED;
    case CUBLAS_STATUS_INVALID_VALUE:
      return CUDNN_STATUS_BAD_PARAM;
    default:
      return CUDNN_STATUS_EXECUTION_FAILED;
  }
}

}  // namespace weir::emulated

extern "C" {

size_t cudnnGetVersion() {
  const auto real = InRealLibrary<size_t (*)()>("cudnnGetVersion");
  return real == nullptr ? CUDNN_VERSION : real();
}

size_t cudnnGetCudartVersion() {
  const auto real = InRealLibrary<size_t (*)()>("cudnnGetCudartVersion");
  return real == nullptr ? CUDART_VERSION : real();
}

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  const auto version = static_cast<int>(cudnnGetVersion());  // 92600 is 9.26.0
  if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL) return CUDNN_STATUS_BAD_PARAM;
  const int parts[] = {version / 10000, version / 100 % 100, version % 100};
  *value = parts[type];
  return CUDNN_STATUS_SUCCESS;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_STATUS_INTERNAL_ERROR";
  }
}

void cudnnGetLastErrorString(char* message, size_t size) {
  if (size > 0) std::snprintf(message, size, "%s", "see the lines of the emulated GPU");
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (handle == nullptr || UsePrimary() != CUDA_SUCCESS) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = handles.Make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return handles.Destroy(handle, "cudnnDestroy"); }

cudnnStatus_t cudnnSetStream(cudnnHandle_t opaque, cudaStream_t stream) {
  const auto handle = handles.Find(opaque, "cudnnSetStream");
  if (handle == nullptr || FindStream(stream, "cudnnSetStream") == nullptr) return CUDNN_STATUS_BAD_PARAM;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t opaque, cudaStream_t* stream) {
  const auto handle = handles.Find(opaque, "cudnnGetStream");
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}
}
