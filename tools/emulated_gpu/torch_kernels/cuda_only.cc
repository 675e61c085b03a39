#include "tools/emulated_gpu/torch_kernels/cuda_only.h"

#include "tools/emulated_gpu/torch_kernels/attention.h"

namespace weir::emulated {

void RegisterCudaOnly(torch::Library& cuda) {
  RegisterDropout(cuda);
  RegisterRecurrentCells(cuda);
  RegisterMixedPrecisionProducts(cuda);
  RegisterAttention(cuda);
}

}  // namespace weir::emulated
