#include "tools/emulated_gpu/cudnn/workspaces.h"

#include <algorithm>
#include <array>

#include "tools/emulated_gpu/device/profile.h"

namespace weir::emulated {
namespace {

constexpr size_t kAlignment = 256;  // of each part of a workspace

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Dimension 1 is the channel; a tensor of one channel has either layout.
bool ChannelsInnermost(const TensorShape& shape) {
  return shape.dims.size() < 3 || shape.dims[1] == 1 || shape.strides[1] == 1;
}

struct Convolution {
  TensorShape x, w, y;
  bool gradient_of_weights;
};

size_t WorkspaceOf(const Convolution& convolution) {
  const std::array tensors = {&convolution.x, &convolution.w, &convolution.y};
  for (const TensorShape* tensor : tensors) {
    if (tensor->type == CUDNN_DATA_DOUBLE || tensor->dims.size() < 3) return 0;
  }
  if (convolution.x.dims[1] != convolution.w.dims[1]) return 0;  // groups
  size_t bytes = 0;
  for (const TensorShape* tensor : tensors) {
    if (!ChannelsInnermost(*tensor)) bytes += Aligned(tensor->Elements() * BytesOf(tensor->type));
  }
  if (convolution.gradient_of_weights && BytesOf(convolution.w.type) == 2)
    bytes += Aligned(convolution.w.Elements() * sizeof(float));
  return bytes;
}

size_t WorkspaceOfOperation(const GraphDescriptor& operation) {
  const auto shape = [&](cudnnBackendAttributeName_t name) {
    const GraphDescriptor* tensor = operation.Part(name);
    return tensor == nullptr ? TensorShape() : ShapeOf(*tensor);
  };
  switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return WorkspaceOf({shape(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X),
                          shape(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W),
                          shape(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y), false});
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return WorkspaceOf({shape(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX),
                          shape(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W),
                          shape(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY), false});
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return WorkspaceOf({shape(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X),
                          shape(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW),
                          shape(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY), true});
    case CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR: {
      const TensorShape query = shape(CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC);
      if (query.dims.empty()) return 0;
      const int64_t rows = query.Elements() / std::max<int64_t>(query.dims.back(), 1);
      return Aligned(query.Elements() * sizeof(float)) + Aligned(rows * sizeof(float));
    }
    default:
      return 0;
  }
}

}  // namespace

size_t WorkspaceOfGraph(const GraphDescriptor& graph) {
  size_t bytes = 0;
  for (const auto& operation : graph.Parts(CUDNN_ATTR_OPERATIONGRAPH_OPS))
    bytes += WorkspaceOfOperation(*operation);
  return bytes;
}

size_t WorkspaceOfBatchNorm(cudnnBatchNormMode_t mode, const TensorShape& parameters) {
  return mode == CUDNN_BATCHNORM_SPATIAL_PERSISTENT ? Aligned(2 * parameters.Elements() * sizeof(float)) : 0;
}

size_t ReserveOfBatchNorm(cudnnBatchNormOps_t operations, const TensorShape& x) {
  return operations == CUDNN_BATCHNORM_OPS_BN ? 0 : Aligned((x.Elements() + 7) / 8);
}

size_t WorkspaceOfRecurrent(const cudnnRNNStruct& network, const cudnnRNNDataStruct& sequence) {
  const size_t step = BytesOf(network.type) * sequence.Steps() * network.Directions();
  const size_t between = network.layers > 1 ? 2 * Aligned(step * network.projected) : 0;
  return Aligned(step * network.Gates() * network.hidden) + between;
}

size_t ReserveOfRecurrent(const cudnnRNNStruct& network, const cudnnRNNDataStruct& sequence) {
  const int64_t steps = sequence.Steps() * network.Directions();
  const bool one_more = network.mode == CUDNN_LSTM || network.mode == CUDNN_GRU;
  const int64_t values = (network.Gates() + (one_more ? 1 : 0)) * network.hidden + network.projected;
  const int64_t kept = network.dropout > 0 ? (network.layers - 1) * steps * network.projected : 0;
  return Aligned(network.layers * steps * values * BytesOf(network.type)) + Aligned(kept);
}

size_t WorkspaceOfCtcLoss(int64_t time, int64_t batch, int64_t longest_label) {
  return 2 * Aligned(time * batch * (2 * longest_label + 1) * sizeof(float));
}

size_t BytesOfDropoutStates() {
  const Profile& profile = *Settings().profile;
  return size_t{48} * profile.multiprocessors * profile.threads_per_multiprocessor;
}

}  // namespace weir::emulated
