// Descriptors of cuDNN's backend interface: each holds attributes, and descriptors by their content. An operation graph
// is made of operations with tensors; heuristics give engine configurations for it, which make a plan.
#ifndef WEIR_EMULATED_GPU_CUDNN_GRAPH_H_
#define WEIR_EMULATED_GPU_CUDNN_GRAPH_H_

#include <cstring>

#include "tools/emulated_gpu/cudnn/library.h"

namespace weir::emulated {

struct GraphDescriptor;

struct Attribute {
  cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
  int64_t count = 0;
  std::vector<char> bytes;                                    // of `count` elements; empty for descriptors
  std::vector<std::shared_ptr<const GraphDescriptor>> parts;  // for descriptors
};

struct GraphDescriptor {
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
  std::unordered_map<int, Attribute> attributes;
  bool finalized = false;

  const Attribute* Find(cudnnBackendAttributeName_t name) const;
  // The descriptors of an attribute; empty when it was not set.
  const std::vector<std::shared_ptr<const GraphDescriptor>>& Parts(cudnnBackendAttributeName_t name) const;
  const GraphDescriptor* Part(cudnnBackendAttributeName_t name) const;  // the first, or null

  template <typename Value>
  std::vector<Value> Values(cudnnBackendAttributeName_t name) const {
    const Attribute* found = Find(name);
    std::vector<Value> values;
    if (found == nullptr || found->bytes.size() % sizeof(Value) != 0) return values;
    values.resize(found->bytes.size() / sizeof(Value));
    if (!values.empty()) std::memcpy(values.data(), found->bytes.data(), found->bytes.size());
    return values;
  }

  template <typename Value>
  Value ValueOr(cudnnBackendAttributeName_t name, Value otherwise) const {
    const std::vector<Value> values = Values<Value>(name);
    return values.empty() ? otherwise : values.front();
  }

  bool Flag(cudnnBackendAttributeName_t name) const { return ValueOr<char>(name, 0) != 0; }

  void SetInt64(cudnnBackendAttributeName_t name, int64_t value);
};

TensorShape ShapeOf(const GraphDescriptor& tensor);

// A tensor of a graph that has memory of its own, and whether the graph writes it.
struct GraphTensor {
  int64_t id;
  TensorShape shape;
  bool written;
};
std::vector<GraphTensor> TensorsOf(const GraphDescriptor& graph);

// What finalizing adds to a descriptor: engine configurations to heuristics, the workspace to a plan.
cudnnStatus_t FinalizeGraphDescriptor(GraphDescriptor& descriptor);

// BAD_PARAM when the pack lacks the workspace that the plan wants.
cudnnStatus_t ExecutePlan(cudnnHandle_t handle, const GraphDescriptor& plan, const GraphDescriptor& pack);

}  // namespace weir::emulated

#endif
