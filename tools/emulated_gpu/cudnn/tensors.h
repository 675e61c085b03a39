// The descriptors of cuDNN's older interface that others than their own file read.
#ifndef WEIR_EMULATED_GPU_CUDNN_TENSORS_H_
#define WEIR_EMULATED_GPU_CUDNN_TENSORS_H_

#include "tools/emulated_gpu/cudnn/library.h"

struct cudnnTensorStruct : weir::emulated::TensorShape {};

struct cudnnDropoutStruct {
  float rate = 0;
  void* states = nullptr;
  size_t states_bytes = 0;
};

namespace weir::emulated {

// Null, and reported, when it is not alive.
std::shared_ptr<cudnnTensorStruct> FindTensor(cudnnTensorDescriptor_t tensor, const char* call);
std::shared_ptr<cudnnDropoutStruct> FindDropout(cudnnDropoutDescriptor_t dropout, const char* call);

// A tensor without gaps, the last dimension innermost.
TensorShape Packed(cudnnDataType_t type, std::vector<int64_t> dims);

}  // namespace weir::emulated

#endif
