// Batch normalisation by the older interface, as torch calls it.
#include "tools/emulated_gpu/cudnn/tensors.h"
#include "tools/emulated_gpu/cudnn/workspaces.h"

using namespace weir::emulated;

namespace {

struct Operand {
  cudnnTensorDescriptor_t shape;
  const void* base;
  Use use;
};

cudnnStatus_t Normalise(const char* call, cudnnHandle_t handle, std::initializer_list<Operand> operands,
                        std::vector<Matrix> spaces) {
  for (const Operand& operand : operands) {
    if (operand.base == nullptr) continue;
    const auto shape = FindTensor(operand.shape, call);
    if (shape == nullptr) return CUDNN_STATUS_BAD_PARAM;
    spaces.push_back(TensorAt(operand.base, *shape, operand.use));
  }
  return Run(call, handle, spaces);
}

cudnnStatus_t WorkspaceSize(const char* call, cudnnBatchNormMode_t mode, cudnnTensorDescriptor_t parameters,
                            size_t* bytes) {
  const auto shape = FindTensor(parameters, call);
  if (shape == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *bytes = WorkspaceOfBatchNorm(mode, *shape);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t parameters,
    const cudnnActivationDescriptor_t, size_t* bytes) {
  return WorkspaceSize("cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize", mode, parameters, bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t parameters,
    const cudnnActivationDescriptor_t, size_t* bytes) {
  return WorkspaceSize("cudnnGetBatchNormalizationBackwardExWorkspaceSize", mode, parameters, bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t, cudnnBatchNormMode_t,
                                                                   cudnnBatchNormOps_t operations,
                                                                   const cudnnActivationDescriptor_t,
                                                                   const cudnnTensorDescriptor_t x,
                                                                   size_t* bytes) {
  const auto shape = FindTensor(x, "cudnnGetBatchNormalizationTrainingExReserveSpaceSize");
  if (shape == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *bytes = ReserveOfBatchNorm(operations, *shape);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const void*, const void*,
    const cudnnTensorDescriptor_t x_shape, const void* x, const cudnnTensorDescriptor_t z_shape,
    const void* z, const cudnnTensorDescriptor_t y_shape, void* y, const cudnnTensorDescriptor_t parameters,
    const void* scale, const void* bias, double, void* running_mean, void* running_variance, double,
    void* save_mean, void* save_variance, cudnnActivationDescriptor_t, void* workspace,
    size_t workspace_bytes, void* reserve, size_t reserve_bytes) {
  return Normalise("cudnnBatchNormalizationForwardTrainingEx", handle,
                   {{x_shape, x, Use::kRead},
                    {z_shape, z, Use::kRead},
                    {y_shape, y, Use::kWrite},
                    {parameters, scale, Use::kRead},
                    {parameters, bias, Use::kRead},
                    {parameters, running_mean, Use::kWrite},
                    {parameters, running_variance, Use::kWrite},
                    {parameters, save_mean, Use::kWrite},
                    {parameters, save_variance, Use::kWrite}},
                   {Workspace(workspace, workspace_bytes), BytesAt(reserve, reserve_bytes, Use::kWrite)});
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(cudnnHandle_t handle, cudnnBatchNormMode_t, const void*,
                                                      const void*, const cudnnTensorDescriptor_t x_shape,
                                                      const void* x, const cudnnTensorDescriptor_t y_shape,
                                                      void* y, const cudnnTensorDescriptor_t parameters,
                                                      const void* scale, const void* bias, const void* mean,
                                                      const void* variance, double) {
  return Normalise("cudnnBatchNormalizationForwardInference", handle,
                   {{x_shape, x, Use::kRead},
                    {y_shape, y, Use::kWrite},
                    {parameters, scale, Use::kRead},
                    {parameters, bias, Use::kRead},
                    {parameters, mean, Use::kRead},
                    {parameters, variance, Use::kRead}},
                   {});
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const void*, const void*, const void*,
    const void*, const cudnnTensorDescriptor_t x_shape, const void* x, const cudnnTensorDescriptor_t y_shape,
    const void* y, const cudnnTensorDescriptor_t dy_shape, const void* dy,
    const cudnnTensorDescriptor_t dz_shape, void* dz, const cudnnTensorDescriptor_t dx_shape, void* dx,
    const cudnnTensorDescriptor_t parameters, const void* scale, const void* bias, void* d_scale,
    void* d_bias, double, const void* save_mean, const void* save_variance, cudnnActivationDescriptor_t,
    void* workspace, size_t workspace_bytes, void* reserve, size_t reserve_bytes) {
  return Normalise("cudnnBatchNormalizationBackwardEx", handle,
                   {{x_shape, x, Use::kRead},
                    {y_shape, y, Use::kRead},
                    {dy_shape, dy, Use::kRead},
                    {dz_shape, dz, Use::kWrite},
                    {dx_shape, dx, Use::kWrite},
                    {parameters, scale, Use::kRead},
                    {parameters, bias, Use::kRead},
                    {parameters, d_scale, Use::kWrite},
                    {parameters, d_bias, Use::kWrite},
                    {parameters, save_mean, Use::kRead},
                    {parameters, save_variance, Use::kRead}},
                   {Workspace(workspace, workspace_bytes), BytesAt(reserve, reserve_bytes, Use::kRead)});
}
}
