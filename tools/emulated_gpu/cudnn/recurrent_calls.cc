// cudnn*RNN*: descriptors, sizes and the three passes.
#include "tools/emulated_gpu/cudnn/recurrent.h"
#include "tools/emulated_gpu/cudnn/tensors.h"
#include "tools/emulated_gpu/cudnn/workspaces.h"

using namespace weir::emulated;

namespace {

auto& networks = *new Live<cudnnRNNStruct>("RNN descriptor");
auto& sequences = *new Live<cudnnRNNDataStruct>("RNN data descriptor");

void Describe(cudnnTensorDescriptor_t opaque, const char* call, cudnnDataType_t type,
              const cudnnRNNStruct::Parameter& parameter) {
  if (opaque == nullptr) return;  // the caller does not ask
  if (const auto tensor = FindTensor(opaque, call); tensor != nullptr) {
    static_cast<TensorShape&>(*tensor) = Packed(type, {1, parameter.rows, parameter.columns});
  }
}

void* AddressOf(const void* space, const cudnnRNNStruct& network,
                const cudnnRNNStruct::Parameter& parameter) {
  if (parameter.rows == 0) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(space);
  return reinterpret_cast<void*>(begin + parameter.offset * BytesOf(network.type));
}

// The memory of a pass; what is null is not used.
struct Pass {
  const char* call;
  std::vector<Matrix> memory;
  bool valid = true;

  void Sequence(cudnnRNNDataDescriptor_t opaque, const void* base, Use use) {
    if (base == nullptr) return;
    const auto sequence = sequences.Find(opaque, call);
    valid = valid && sequence != nullptr;
    if (sequence != nullptr) memory.push_back(BytesAt(base, sequence->Bytes(), use));
  }
  void Tensor(cudnnTensorDescriptor_t opaque, const void* base, Use use) {
    if (base == nullptr) return;
    const auto tensor = FindTensor(opaque, call);
    valid = valid && tensor != nullptr;
    if (tensor != nullptr) memory.push_back(TensorAt(base, *tensor, use));
  }
  void Bytes(const void* base, size_t bytes, Use use) { memory.push_back(BytesAt(base, bytes, use)); }
  cudnnStatus_t Run(cudnnHandle_t handle) const {
    return valid ? weir::emulated::Run(call, handle, memory) : CUDNN_STATUS_BAD_PARAM;
  }
};

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* network) {
  *network = networks.Make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t network) {
  return networks.Destroy(network, "cudnnDestroyRNNDescriptor");
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t opaque, cudnnRNNAlgo_t, cudnnRNNMode_t mode,
                                       cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input_mode, cudnnDataType_t type, cudnnDataType_t,
                                       cudnnMathType_t, int32_t input, int32_t hidden, int32_t projected,
                                       int32_t layers, cudnnDropoutDescriptor_t dropout, uint32_t) {
  const auto network = networks.Find(opaque, "cudnnSetRNNDescriptor_v8");
  if (network == nullptr || hidden < 1 || layers < 1 || projected > hidden) return CUDNN_STATUS_BAD_PARAM;
  float rate = 0;
  if (dropout != nullptr) {
    const auto described = FindDropout(dropout, "cudnnSetRNNDescriptor_v8");
    if (described == nullptr) return CUDNN_STATUS_BAD_PARAM;
    rate = described->rate;
  }
  *network = {mode,
              bias,
              direction == CUDNN_BIDIRECTIONAL,
              input_mode == CUDNN_SKIP_INPUT,
              type,
              input,
              hidden,
              projected == 0 ? hidden : projected,
              layers,
              rate};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* sequence) {
  *sequence = sequences.Make();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t sequence) {
  return sequences.Destroy(sequence, "cudnnDestroyRNNDataDescriptor");
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t opaque, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int longest, int batch, int width,
                                        const int lengths[], void*) {
  const auto sequence = sequences.Find(opaque, "cudnnSetRNNDataDescriptor");
  if (sequence == nullptr || longest < 1 || batch < 1 || width < 1) return CUDNN_STATUS_BAD_PARAM;
  int64_t steps = 0;
  for (int i = 0; i < batch; ++i) {
    if (lengths[i] < 0 || lengths[i] > longest) return CUDNN_STATUS_BAD_PARAM;
    steps += lengths[i];
  }
  *sequence = {type, layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, longest, batch, width, steps};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t, cudnnRNNDescriptor_t opaque, size_t* bytes) {
  const auto network = networks.Find(opaque, "cudnnGetRNNWeightSpaceSize");
  if (network == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *bytes = static_cast<size_t>(network->Parameters()) * BytesOf(network->type);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t, cudnnRNNDescriptor_t opaque, int32_t pseudo_layer,
                                      size_t, const void* space, int32_t linear,
                                      cudnnTensorDescriptor_t matrix_shape, void** matrix_address,
                                      cudnnTensorDescriptor_t bias_shape, void** bias_address) {
  const char* call = "cudnnGetRNNWeightParams";
  const auto network = networks.Find(opaque, call);
  if (network == nullptr || pseudo_layer < 0 || pseudo_layer >= network->PseudoLayers() || linear < 0)
    return CUDNN_STATUS_BAD_PARAM;
  const auto matrix = network->MatrixOf(pseudo_layer, linear), bias = network->BiasOf(pseudo_layer, linear);
  Describe(matrix_shape, call, network->type, matrix);
  Describe(bias_shape, call, network->type, bias);
  if (matrix_address != nullptr) *matrix_address = AddressOf(space, *network, matrix);
  if (bias_address != nullptr) *bias_address = AddressOf(space, *network, bias);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t, cudnnRNNDescriptor_t opaque, cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t x, size_t* workspace, size_t* reserve) {
  const char* call = "cudnnGetRNNTempSpaceSizes";
  const auto network = networks.Find(opaque, call);
  const auto sequence = sequences.Find(x, call);
  if (network == nullptr || sequence == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (workspace != nullptr) *workspace = WorkspaceOfRecurrent(*network, *sequence);
  if (reserve != nullptr)
    *reserve = mode == CUDNN_FWD_MODE_TRAINING ? ReserveOfRecurrent(*network, *sequence) : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t, cudnnForwardMode_t, const int32_t[],
                              cudnnRNNDataDescriptor_t x_shape, const void* x,
                              cudnnRNNDataDescriptor_t y_shape, void* y, cudnnTensorDescriptor_t h_shape,
                              const void* hx, void* hy, cudnnTensorDescriptor_t c_shape, const void* cx,
                              void* cy, size_t weight_bytes, const void* weights, size_t workspace_bytes,
                              void* workspace, size_t reserve_bytes, void* reserve) {
  Pass pass{"cudnnRNNForward", {}};
  pass.Sequence(x_shape, x, Use::kRead);
  pass.Sequence(y_shape, y, Use::kWrite);
  pass.Tensor(h_shape, hx, Use::kRead);
  pass.Tensor(h_shape, hy, Use::kWrite);
  pass.Tensor(c_shape, cx, Use::kRead);
  pass.Tensor(c_shape, cy, Use::kWrite);
  pass.Bytes(weights, weight_bytes, Use::kRead);
  pass.Bytes(workspace, workspace_bytes, Use::kUnknown);
  pass.Bytes(reserve, reserve_bytes, Use::kWrite);
  return pass.Run(handle);
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t, const int32_t[],
                                      cudnnRNNDataDescriptor_t y_shape, const void* y, const void* dy,
                                      cudnnRNNDataDescriptor_t x_shape, void* dx,
                                      cudnnTensorDescriptor_t h_shape, const void* hx, const void* dhy,
                                      void* dhx, cudnnTensorDescriptor_t c_shape, const void* cx,
                                      const void* dcy, void* dcx, size_t weight_bytes, const void* weights,
                                      size_t workspace_bytes, void* workspace, size_t reserve_bytes,
                                      void* reserve) {
  Pass pass{"cudnnRNNBackwardData_v8", {}};
  pass.Sequence(y_shape, y, Use::kRead);
  pass.Sequence(y_shape, dy, Use::kRead);
  pass.Sequence(x_shape, dx, Use::kWrite);
  for (const void* read : {hx, dhy}) pass.Tensor(h_shape, read, Use::kRead);
  for (const void* read : {cx, dcy}) pass.Tensor(c_shape, read, Use::kRead);
  pass.Tensor(h_shape, dhx, Use::kWrite);
  pass.Tensor(c_shape, dcx, Use::kWrite);
  pass.Bytes(weights, weight_bytes, Use::kRead);
  pass.Bytes(workspace, workspace_bytes, Use::kUnknown);
  pass.Bytes(reserve, reserve_bytes, Use::kWrite);  // documented: it is read and written
  return pass.Run(handle);
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t, cudnnWgradMode_t,
                                         const int32_t[], cudnnRNNDataDescriptor_t x_shape, const void* x,
                                         cudnnTensorDescriptor_t h_shape, const void* hx,
                                         cudnnRNNDataDescriptor_t y_shape, const void* y, size_t weight_bytes,
                                         void* gradient, size_t workspace_bytes, void* workspace,
                                         size_t reserve_bytes, void* reserve) {
  Pass pass{"cudnnRNNBackwardWeights_v8", {}};
  pass.Sequence(x_shape, x, Use::kRead);
  pass.Tensor(h_shape, hx, Use::kRead);
  pass.Sequence(y_shape, y, Use::kRead);
  pass.Bytes(gradient, weight_bytes, Use::kWrite);
  pass.Bytes(workspace, workspace_bytes, Use::kUnknown);
  pass.Bytes(reserve, reserve_bytes, Use::kRead);
  return pass.Run(handle);
}
}
