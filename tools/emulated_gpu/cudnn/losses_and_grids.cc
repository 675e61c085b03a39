// CTC loss and the spatial transformer.
#include <algorithm>

#include "tools/emulated_gpu/cudnn/tensors.h"
#include "tools/emulated_gpu/cudnn/workspaces.h"

using namespace weir::emulated;

struct cudnnCTCLossStruct {
  int64_t longest_label = 0;  // 0: not told
};

struct cudnnSpatialTransformerStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int64_t> dims;  // of the output: batch, channels, then space

  // Two coordinates in two dimensions, three in three, for each point of the output.
  TensorShape Grid() const {
    std::vector<int64_t> grid{dims[0]};
    grid.insert(grid.end(), dims.begin() + 2, dims.end());
    grid.push_back(static_cast<int64_t>(dims.size()) - 2);
    return Packed(type, grid);
  }
  TensorShape Matrices() const {
    const auto space = static_cast<int64_t>(dims.size()) - 2;
    return Packed(type, {dims[0], space, space + 1});
  }
};

namespace {

auto& losses = *new Live<cudnnCTCLossStruct>("CTC loss descriptor");
auto& transformers = *new Live<cudnnSpatialTransformerStruct>("spatial transformer descriptor");

cudnnStatus_t SetLoss(const char* call, cudnnCTCLossDescriptor_t opaque, int64_t longest_label) {
  const auto loss = losses.Find(opaque, call);
  if (loss == nullptr) return CUDNN_STATUS_BAD_PARAM;
  loss->longest_label = longest_label;
  return CUDNN_STATUS_SUCCESS;
}

// Probabilities are [time, batch, labels]; costs have one value of their type for each sequence.
cudnnStatus_t Loss(const char* call, cudnnHandle_t handle, cudnnTensorDescriptor_t probabilities_shape,
                   const void* probabilities, void* costs, cudnnTensorDescriptor_t gradients_shape,
                   void* gradients, Matrix workspace, std::vector<Matrix> memory) {
  const auto shape = FindTensor(probabilities_shape, call);
  if (shape == nullptr || shape->dims.size() != 3) return CUDNN_STATUS_BAD_PARAM;
  memory.push_back(TensorAt(probabilities, *shape, Use::kRead));
  memory.push_back(BytesAt(costs, shape->dims[1] * BytesOf(shape->type), Use::kWrite));
  if (gradients != nullptr) {
    const auto gradient = FindTensor(gradients_shape, call);
    if (gradient == nullptr) return CUDNN_STATUS_BAD_PARAM;
    memory.push_back(TensorAt(gradients, *gradient, Use::kWrite));
  }
  memory.push_back(workspace);
  return Run(call, handle, memory);
}

cudnnStatus_t LossWorkspace(const char* call, cudnnTensorDescriptor_t probabilities, int64_t longest_label,
                            size_t* bytes) {
  const auto shape = FindTensor(probabilities, call);
  if (shape == nullptr || shape->dims.size() != 3) return CUDNN_STATUS_BAD_PARAM;
  *bytes = WorkspaceOfCtcLoss(shape->dims[0], shape->dims[1], longest_label);
  return CUDNN_STATUS_SUCCESS;
}

struct Part {
  cudnnTensorDescriptor_t shape;
  const void* base;
  Use use;
};

// A sampler pass: tensors with descriptors, and the grid by the transformer.
cudnnStatus_t Sample(const char* call, cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t opaque,
                     std::initializer_list<Part> parts, const void* grid, const void* grid_gradient) {
  const auto transformer = transformers.Find(opaque, call);
  if (transformer == nullptr || transformer->dims.size() < 4) return CUDNN_STATUS_BAD_PARAM;
  std::vector<Matrix> memory{TensorAt(grid, transformer->Grid(), Use::kRead),
                             TensorAt(grid_gradient, transformer->Grid(), Use::kWrite)};
  for (const Part& part : parts) {
    const auto shape = FindTensor(part.shape, call);
    if (shape == nullptr) return CUDNN_STATUS_BAD_PARAM;
    memory.push_back(TensorAt(part.base, *shape, part.use));
  }
  return Run(call, handle, memory);
}

cudnnStatus_t MakeGrid(const char* call, cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t opaque,
                       const void* matrices, Use of_matrices, const void* grid, Use of_grid) {
  const auto transformer = transformers.Find(opaque, call);
  if (transformer == nullptr || transformer->dims.size() < 4) return CUDNN_STATUS_BAD_PARAM;
  return Run(call, handle,
             {TensorAt(matrices, transformer->Matrices(), of_matrices),
              TensorAt(grid, transformer->Grid(), of_grid)});
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreateCTCLossDescriptor(cudnnCTCLossDescriptor_t* loss) {
  *loss = losses.Make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyCTCLossDescriptor(cudnnCTCLossDescriptor_t loss) {
  return losses.Destroy(loss, "cudnnDestroyCTCLossDescriptor");
}

cudnnStatus_t cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t loss, cudnnDataType_t,
                                          cudnnLossNormalizationMode_t, cudnnNanPropagation_t) {
  return SetLoss("cudnnSetCTCLossDescriptorEx", loss, 0);
}

cudnnStatus_t cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t loss, cudnnDataType_t,
                                           cudnnLossNormalizationMode_t, cudnnCTCGradMode_t,
                                           int longest_label) {
  return SetLoss("cudnnSetCTCLossDescriptor_v9", loss, longest_label);
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t probabilities,
                                           const cudnnTensorDescriptor_t, const int*,
                                           const int* label_lengths, const int*, cudnnCTCLossAlgo_t,
                                           cudnnCTCLossDescriptor_t, size_t* bytes) {
  const char* call = "cudnnGetCTCLossWorkspaceSize";
  const auto shape = FindTensor(probabilities, call);
  if (shape == nullptr || shape->dims.size() != 3) return CUDNN_STATUS_BAD_PARAM;
  const int64_t longest = *std::max_element(label_lengths, label_lengths + shape->dims[1]);
  return LossWorkspace(call, probabilities, longest, bytes);
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(cudnnHandle_t, cudnnCTCLossAlgo_t,
                                              cudnnCTCLossDescriptor_t opaque,
                                              const cudnnTensorDescriptor_t probabilities,
                                              const cudnnTensorDescriptor_t, size_t* bytes) {
  const char* call = "cudnnGetCTCLossWorkspaceSize_v8";
  const auto loss = losses.Find(opaque, call);
  if (loss == nullptr) return CUDNN_STATUS_BAD_PARAM;
  return LossWorkspace(call, probabilities, loss->longest_label, bytes);
}

cudnnStatus_t cudnnCTCLoss(cudnnHandle_t handle, const cudnnTensorDescriptor_t probabilities_shape,
                           const void* probabilities, const int[], const int[], const int[], void* costs,
                           const cudnnTensorDescriptor_t gradients_shape, void* gradients, cudnnCTCLossAlgo_t,
                           cudnnCTCLossDescriptor_t, void* workspace, size_t workspace_bytes) {
  return Loss("cudnnCTCLoss", handle, probabilities_shape, probabilities, costs, gradients_shape, gradients,
              Workspace(workspace, workspace_bytes), {});
}

cudnnStatus_t cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t, cudnnCTCLossDescriptor_t,
                              const cudnnTensorDescriptor_t probabilities_shape, const void* probabilities,
                              const int labels[], const int label_lengths[], const int input_lengths[],
                              void* costs, const cudnnTensorDescriptor_t gradients_shape, void* gradients,
                              size_t workspace_bytes, void* workspace) {
  // The lengths lie on the device, so the number of labels is not known here: one at least.
  return Loss("cudnnCTCLoss_v8", handle, probabilities_shape, probabilities, costs, gradients_shape,
              gradients, Workspace(workspace, workspace_bytes),
              {BytesAt(labels, sizeof(int), Use::kRead), BytesAt(label_lengths, sizeof(int), Use::kRead),
               BytesAt(input_lengths, sizeof(int), Use::kRead)});
}

cudnnStatus_t cudnnCreateSpatialTransformerDescriptor(cudnnSpatialTransformerDescriptor_t* transformer) {
  *transformer = transformers.Make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroySpatialTransformerDescriptor(cudnnSpatialTransformerDescriptor_t transformer) {
  return transformers.Destroy(transformer, "cudnnDestroySpatialTransformerDescriptor");
}

cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(cudnnSpatialTransformerDescriptor_t opaque,
                                                     cudnnSamplerType_t, cudnnDataType_t type,
                                                     const int count, const int dims[]) {
  const auto transformer = transformers.Find(opaque, "cudnnSetSpatialTransformerNdDescriptor");
  if (transformer == nullptr || count < 4 || count > CUDNN_DIM_MAX) return CUDNN_STATUS_BAD_PARAM;
  transformer->type = type;
  transformer->dims.assign(dims, dims + count);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSpatialTfGridGeneratorForward(cudnnHandle_t handle,
                                                 const cudnnSpatialTransformerDescriptor_t transformer,
                                                 const void* matrices, void* grid) {
  return MakeGrid("cudnnSpatialTfGridGeneratorForward", handle, transformer, matrices, Use::kRead, grid,
                  Use::kWrite);
}

cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(cudnnHandle_t handle,
                                                  const cudnnSpatialTransformerDescriptor_t transformer,
                                                  const void* grid_gradient, void* matrices_gradient) {
  return MakeGrid("cudnnSpatialTfGridGeneratorBackward", handle, transformer, matrices_gradient, Use::kWrite,
                  grid_gradient, Use::kRead);
}

cudnnStatus_t cudnnSpatialTfSamplerForward(cudnnHandle_t handle,
                                           cudnnSpatialTransformerDescriptor_t transformer, const void*,
                                           const cudnnTensorDescriptor_t x_shape, const void* x,
                                           const void* grid, const void*, cudnnTensorDescriptor_t y_shape,
                                           void* y) {
  return Sample("cudnnSpatialTfSamplerForward", handle, transformer,
                {{x_shape, x, Use::kRead}, {y_shape, y, Use::kWrite}}, grid, nullptr);
}

cudnnStatus_t cudnnSpatialTfSamplerBackward(cudnnHandle_t handle,
                                            cudnnSpatialTransformerDescriptor_t transformer, const void*,
                                            const cudnnTensorDescriptor_t x_shape, const void* x, const void*,
                                            const cudnnTensorDescriptor_t dx_shape, void* dx, const void*,
                                            const cudnnTensorDescriptor_t dy_shape, const void* dy,
                                            const void* grid, const void*, void* grid_gradient) {
  return Sample("cudnnSpatialTfSamplerBackward", handle, transformer,
                {{x_shape, x, Use::kRead}, {dx_shape, dx, Use::kWrite}, {dy_shape, dy, Use::kRead}}, grid,
                grid_gradient);
}
}
