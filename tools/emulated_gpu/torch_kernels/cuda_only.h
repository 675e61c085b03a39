// Ops that have a CUDA kernel and no CPU kernel, and that training jobs meet by default: written from their
// documented meaning, as compositions of other ops (which then run on the CPU). Called by install.cc.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_CUDA_ONLY_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_CUDA_ONLY_H_

namespace torch {
class Library;
}

namespace weir::emulated {

// Everything below and attention.h.
void RegisterCudaOnly(torch::Library& cuda);

void RegisterDropout(torch::Library& cuda);
void RegisterRecurrentCells(torch::Library& cuda);
void RegisterMixedPrecisionProducts(torch::Library& cuda);

}  // namespace weir::emulated

#endif
