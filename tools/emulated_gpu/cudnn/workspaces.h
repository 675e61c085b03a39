// The model of what cuDNN chooses and does not document: bytes of workspace and reserve. These sizes are an estimate; all
// other sizes of this folder follow from documentation.
#ifndef WEIR_EMULATED_GPU_CUDNN_WORKSPACES_H_
#define WEIR_EMULATED_GPU_CUDNN_WORKSPACES_H_

#include "tools/emulated_gpu/cudnn/graph.h"
#include "tools/emulated_gpu/cudnn/recurrent.h"

namespace weir::emulated {

// A convolution on tensor cores computes on tensors whose channels are innermost (NVIDIA, "Convolutional Layers User's
// Guide", 1.3: other layouts are transposed automatically): with other layouts, copies of its three tensors. The
// gradient of 16-bit weights is summed up in 32 bits. No workspace in double precision, with groups, and for other graphs.
//
// The backward of attention, as in "FlashAttention-2" (Dao, 2023), algorithm 2: the gradient of the query summed up in 32
// bits, and a row sum for each of its rows.
size_t WorkspaceOfGraph(const GraphDescriptor& graph);

// Batch normalisation: sums and sums of squares per channel where one kernel does it all; nothing else.
size_t WorkspaceOfBatchNorm(cudnnBatchNormMode_t mode, const TensorShape& parameters);
// Documented for operations with an activation only: which elements it let through, a bit for each.
size_t ReserveOfBatchNorm(cudnnBatchNormOps_t operations, const TensorShape& x);

// Recurrent networks, while they compute: the gates of all steps of one layer, which come from one product, and where there
// are several layers, the sequences between two of them.
size_t WorkspaceOfRecurrent(const cudnnRNNStruct& network, const cudnnRNNDataStruct& sequence);
// For backward, what the gradients' formulas need: of each step and layer the gates, the output, the cell (LSTM), the hidden
// part of the new gate (GRU), and between layers which elements dropout kept, a byte for each.
size_t ReserveOfRecurrent(const cudnnRNNStruct& network, const cudnnRNNDataStruct& sequence);

// The forward and backward variables of the algorithm, in 32 bits: labels with a blank around each, for each step.
size_t WorkspaceOfCtcLoss(int64_t time, int64_t batch, int64_t longest_label);

// A state of cuRAND's default generator (curand_kernel.h, curandStateXORWOW: 48 bytes) for each thread that can be resident.
size_t BytesOfDropoutStates();

}  // namespace weir::emulated

#endif
