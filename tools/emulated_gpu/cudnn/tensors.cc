// Tensor, filter, activation and dropout descriptors.
#include "tools/emulated_gpu/cudnn/tensors.h"

#include <algorithm>

#include "tools/emulated_gpu/cudnn/workspaces.h"

using namespace weir::emulated;

struct cudnnFilterStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  std::vector<int> dims;
};

struct cudnnActivationStruct {};  // what it computes does not matter here

namespace {

auto& tensors = *new Live<cudnnTensorStruct>("tensor descriptor");
auto& filters = *new Live<cudnnFilterStruct>("filter descriptor");
auto& activations = *new Live<cudnnActivationStruct>("activation descriptor");
auto& dropouts = *new Live<cudnnDropoutStruct>("dropout descriptor");

cudnnStatus_t SetDropout(const char* call, cudnnDropoutDescriptor_t opaque, float rate, void* states,
                         size_t states_bytes) {
  const auto dropout = dropouts.Find(opaque, call);
  if (dropout == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (states != nullptr && states_bytes < BytesOfDropoutStates()) return CUDNN_STATUS_BAD_PARAM;
  *dropout = {rate, states, states_bytes};
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

namespace weir::emulated {

std::shared_ptr<cudnnTensorStruct> FindTensor(cudnnTensorDescriptor_t tensor, const char* call) {
  return tensors.Find(tensor, call);
}

std::shared_ptr<cudnnDropoutStruct> FindDropout(cudnnDropoutDescriptor_t dropout, const char* call) {
  return dropouts.Find(dropout, call);
}

TensorShape Packed(cudnnDataType_t type, std::vector<int64_t> dims) {
  TensorShape shape{type, std::move(dims), {}};
  shape.strides.resize(shape.dims.size());
  int64_t stride = 1;
  for (size_t i = shape.dims.size(); i-- > 0; stride *= shape.dims[i]) shape.strides[i] = stride;
  return shape;
}

}  // namespace weir::emulated

extern "C" {

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  *tensor = tensors.Make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return tensors.Destroy(tensor, "cudnnDestroyTensorDescriptor");
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t opaque, cudnnDataType_t type, int count,
                                         const int dims[], const int strides[]) {
  const auto tensor = tensors.Find(opaque, "cudnnSetTensorNdDescriptor");
  if (tensor == nullptr || count < 1 || count > CUDNN_DIM_MAX) return CUDNN_STATUS_BAD_PARAM;
  tensor->type = type;
  tensor->dims.assign(dims, dims + count);
  tensor->strides.assign(strides, strides + count);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t opaque, int wanted,
                                         cudnnDataType_t* type, int* count, int dims[], int strides[]) {
  const auto tensor = tensors.Find(opaque, "cudnnGetTensorNdDescriptor");
  if (tensor == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *type = tensor->type;
  *count = static_cast<int>(tensor->dims.size());
  const int given = std::min(wanted, *count);
  std::copy_n(tensor->dims.begin(), given, dims);
  std::copy_n(tensor->strides.begin(), given, strides);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  *filter = filters.Make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  return filters.Destroy(filter, "cudnnDestroyFilterDescriptor");
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t opaque, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int count, const int dims[]) {
  const auto filter = filters.Find(opaque, "cudnnSetFilterNdDescriptor");
  if (filter == nullptr || count < 1 || count > CUDNN_DIM_MAX) return CUDNN_STATUS_BAD_PARAM;
  *filter = {type, format, {dims, dims + count}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t opaque, int wanted,
                                         cudnnDataType_t* type, cudnnTensorFormat_t* format, int* count,
                                         int dims[]) {
  const auto filter = filters.Find(opaque, "cudnnGetFilterNdDescriptor");
  if (filter == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *type = filter->type;
  *format = filter->format;
  *count = static_cast<int>(filter->dims.size());
  std::copy_n(filter->dims.begin(), std::min(wanted, *count), dims);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* activation) {
  *activation = activations.Make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t activation) {
  return activations.Destroy(activation, "cudnnDestroyActivationDescriptor");
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activation, cudnnActivationMode_t,
                                           cudnnNanPropagation_t, double) {
  return activations.Find(activation, "cudnnSetActivationDescriptor") == nullptr ? CUDNN_STATUS_BAD_PARAM
                                                                                 : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* dropout) {
  *dropout = dropouts.Make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropout) {
  return dropouts.Destroy(dropout, "cudnnDestroyDropoutDescriptor");
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t, size_t* bytes) {
  *bytes = BytesOfDropoutStates();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle, float rate,
                                        void* states, size_t states_bytes, unsigned long long) {
  const cudnnStatus_t status = SetDropout("cudnnSetDropoutDescriptor", dropout, rate, states, states_bytes);
  if (status != CUDNN_STATUS_SUCCESS || states == nullptr) return status;
  // Documented: it initialises the states, by a kernel.
  return Run("cudnnSetDropoutDescriptor", handle, {BytesAt(states, states_bytes, Use::kWrite)});
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t, float rate,
                                            void* states, size_t states_bytes, unsigned long long) {
  return SetDropout("cudnnRestoreDropoutDescriptor", dropout, rate, states, states_bytes);
}
}
