#include "tools/emulated_gpu/cudnn/recurrent.h"

int64_t cudnnRNNStruct::Gates() const {
  switch (mode) {
    case CUDNN_LSTM:
      return 4;
    case CUDNN_GRU:
      return 3;
    default:
      return 1;
  }
}

int64_t cudnnRNNStruct::InputOf(int64_t pseudo_layer) const {
  return pseudo_layer < Directions() ? input : projected * Directions();
}

int64_t cudnnRNNStruct::Rows(int64_t linear) const { return linear < 2 * Gates() ? hidden : projected; }

int64_t cudnnRNNStruct::Columns(int64_t pseudo_layer, int64_t linear) const {
  if (linear < Gates()) return skips_input && pseudo_layer < Directions() ? 0 : InputOf(pseudo_layer);
  return linear < 2 * Gates() ? projected : hidden;
}

bool cudnnRNNStruct::HasBias(int64_t linear) const {
  if (linear >= 2 * Gates()) return false;
  const bool of_input = linear < Gates();
  switch (bias) {
    case CUDNN_RNN_NO_BIAS:
      return false;
    case CUDNN_RNN_SINGLE_INP_BIAS:
      return of_input;
    case CUDNN_RNN_SINGLE_REC_BIAS:
      return !of_input;
    default:
      return true;
  }
}

int64_t cudnnRNNStruct::MatrixElements(int64_t pseudo_layer) const {
  int64_t elements = 0;
  for (int64_t i = 0; i < Linears(); ++i) elements += Rows(i) * Columns(pseudo_layer, i);
  return elements;
}

int64_t cudnnRNNStruct::BiasElements() const {
  int64_t elements = 0;
  for (int64_t i = 0; i < Linears(); ++i) elements += HasBias(i) ? Rows(i) : 0;
  return elements;
}

cudnnRNNStruct::Parameter cudnnRNNStruct::MatrixOf(int64_t pseudo_layer, int64_t linear) const {
  if (linear >= Linears() || Columns(pseudo_layer, linear) == 0) return {};
  Parameter parameter{0, Rows(linear), Columns(pseudo_layer, linear)};
  for (int64_t i = 0; i < pseudo_layer; ++i) parameter.offset += MatrixElements(i);
  for (int64_t i = 0; i < linear; ++i) parameter.offset += Rows(i) * Columns(pseudo_layer, i);
  return parameter;
}

cudnnRNNStruct::Parameter cudnnRNNStruct::BiasOf(int64_t pseudo_layer, int64_t linear) const {
  if (linear >= Linears() || !HasBias(linear)) return {};
  Parameter parameter{pseudo_layer * BiasElements(), Rows(linear), 1};
  for (int64_t i = 0; i < PseudoLayers(); ++i) parameter.offset += MatrixElements(i);
  for (int64_t i = 0; i < linear; ++i) parameter.offset += HasBias(i) ? Rows(i) : 0;
  return parameter;
}

int64_t cudnnRNNStruct::Parameters() const {
  int64_t elements = PseudoLayers() * BiasElements();
  for (int64_t i = 0; i < PseudoLayers(); ++i) elements += MatrixElements(i);
  return elements;
}
