// Shapes of recurrent networks: their parameters in the weight space, and their sequences.
#ifndef WEIR_EMULATED_GPU_CUDNN_RECURRENT_H_
#define WEIR_EMULATED_GPU_CUDNN_RECURRENT_H_

#include "tools/emulated_gpu/cudnn/library.h"

struct cudnnRNNStruct {
  cudnnRNNMode_t mode = CUDNN_LSTM;
  cudnnRNNBiasMode_t bias = CUDNN_RNN_DOUBLE_BIAS;
  bool bidirectional = false;
  bool skips_input = false;  // the input takes the place of the first layer's product
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int64_t input = 0, hidden = 0, projected = 0, layers = 0;  // sizes in elements; projected == hidden: none
  float dropout = 0;

  int64_t Gates() const;
  int64_t Directions() const { return bidirectional ? 2 : 1; }
  int64_t PseudoLayers() const { return layers * Directions(); }
  bool Projects() const { return projected != hidden; }
  int64_t InputOf(int64_t pseudo_layer) const;  // width of what comes into a layer

  // A parameter: elements from the start of the weight space. `rows` is 0 when there is none.
  struct Parameter {
    int64_t offset = 0, rows = 0, columns = 0;
  };
  // `linear` numbers the products of a pseudo layer as cuDNN documents: gates of the input, gates of the hidden state,
  // then the projection. Matrices of all layers come before the biases of all layers; within a layer they follow each
  // other in that order, as torch demands of the gates.
  Parameter MatrixOf(int64_t pseudo_layer, int64_t linear) const;
  Parameter BiasOf(int64_t pseudo_layer, int64_t linear) const;
  int64_t Parameters() const;  // elements of the weight space

 private:
  int64_t Linears() const { return 2 * Gates() + (Projects() ? 1 : 0); }
  int64_t Rows(int64_t linear) const;
  int64_t Columns(int64_t pseudo_layer, int64_t linear) const;
  bool HasBias(int64_t linear) const;
  int64_t MatrixElements(int64_t pseudo_layer) const;
  int64_t BiasElements() const;
};

struct cudnnRNNDataStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  bool packed = false;
  int64_t longest = 0, batch = 0, width = 0;
  int64_t steps = 0;  // of all sequences, as stored

  int64_t Steps() const { return packed ? steps : longest * batch; }
  size_t Bytes() const { return static_cast<size_t>(Steps() * width) * weir::emulated::BytesOf(type); }
};

#endif
