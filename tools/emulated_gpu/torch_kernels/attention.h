// Attention: CUDA chooses the backend that the CPU would choose, and the fused ones run the CPU's flash
// kernel.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_ATTENTION_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_ATTENTION_H_

namespace torch {
class Library;
}

namespace weir::emulated {

// Replaces the CUDA entry of torch's choice stub. Where the CPU takes its flash kernel, CUDA takes the
// memory-efficient op: unlike CUDA's flash op it has a mask and pads no head dimension, as the CPU kernel.
void ChooseAttentionAsCpu();

void RegisterAttention(torch::Library& cuda);

}  // namespace weir::emulated

#endif
