#include "tools/emulated_gpu/cudnn/graph.h"

#include <algorithm>

#include "tools/emulated_gpu/cudnn/workspaces.h"

namespace weir::emulated {
namespace {

// Attributes of operations that name a tensor which the operation writes; other tensors are read.
constexpr cudnnBackendAttributeName_t kResults[] = {
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
    CUDNN_ATTR_OPERATION_POINTWISE_DXDESC,
    CUDNN_ATTR_OPERATION_MATMUL_CDESC,
    CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
    CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
    CUDNN_ATTR_OPERATION_RNG_YDESC,
    CUDNN_ATTR_OPERATION_SLICE_YDESC,
    CUDNN_ATTR_OPERATION_TRANSPOSE_YDESC,
    CUDNN_ATTR_OPERATION_SOFTMAX_YDESC,
    CUDNN_ATTR_OPERATION_SOFTMAX_STATS_DESC,
    CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
    CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC,
    CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_RNG_DUMP_DESC,
    CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC,
    CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC,
    CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC,
};

// Engines of a graph: the one that heuristics name, and the one of the fallback list, which needs no workspace.
constexpr int64_t kFirstChoice = 0, kWithoutWorkspace = 1;

const GraphDescriptor* EngineOf(const GraphDescriptor& plan) {
  const GraphDescriptor* configuration = plan.Part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  return configuration == nullptr ? nullptr : configuration->Part(CUDNN_ATTR_ENGINECFG_ENGINE);
}

const GraphDescriptor* GraphOf(const GraphDescriptor& plan) {
  const GraphDescriptor* engine = EngineOf(plan);
  return engine == nullptr ? nullptr : engine->Part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
}

int64_t WorkspaceOfEngine(const GraphDescriptor& engine) {
  const GraphDescriptor* graph = engine.Part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  const auto index = engine.ValueOr<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, kFirstChoice);
  if (graph == nullptr || index != kFirstChoice) return 0;
  return static_cast<int64_t>(WorkspaceOfGraph(*graph));
}

void DescribeConfiguration(GraphDescriptor& configuration) {
  const GraphDescriptor* engine = configuration.Part(CUDNN_ATTR_ENGINECFG_ENGINE);
  configuration.SetInt64(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, WorkspaceOfEngine(*engine));
  configuration.attributes[CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED] = {
      CUDNN_TYPE_INT32, 1, std::vector<char>(sizeof(int32_t)), {}};
}

std::shared_ptr<const GraphDescriptor> EngineConfiguration(
    const std::vector<std::shared_ptr<const GraphDescriptor>>& graph, int64_t index) {
  auto engine = std::make_shared<GraphDescriptor>();
  engine->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
  engine->finalized = true;
  engine->attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, graph};
  engine->SetInt64(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
  auto configuration = std::make_shared<GraphDescriptor>();
  configuration->type = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
  configuration->finalized = true;
  configuration->attributes[CUDNN_ATTR_ENGINECFG_ENGINE] = {
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {std::move(engine)}};
  DescribeConfiguration(*configuration);
  return configuration;
}

void FindEngines(GraphDescriptor& heuristics) {
  const auto& graph = heuristics.Parts(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const auto mode = heuristics.ValueOr(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_INSTANT);
  const int64_t index = mode == CUDNN_HEUR_MODE_FALLBACK ? kWithoutWorkspace : kFirstChoice;
  heuristics.attributes[CUDNN_ATTR_ENGINEHEUR_RESULTS] = {
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {EngineConfiguration(graph, index)}};
}

// Of an operation, or of a graph inside one.
void AddTensors(const GraphDescriptor& descriptor, std::vector<GraphTensor>* tensors) {
  for (const auto& [name, attribute] : descriptor.attributes) {
    const bool written = std::find(std::begin(kResults), std::end(kResults), name) != std::end(kResults);
    for (const auto& part : attribute.parts) {
      if (part->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
        AddTensors(*part, tensors);
        continue;
      }
      if (part->Flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL) || part->Flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE)) continue;
      tensors->push_back({part->ValueOr<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0), ShapeOf(*part), written});
    }
  }
}

}  // namespace

TensorShape ShapeOf(const GraphDescriptor& tensor) {
  if (tensor.Part(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC) != nullptr) {
    // Where its rows lie is told by offsets in device memory; its sizes are those of the longest.
    return {tensor.ValueOr(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT), {1}, {1}};
  }
  return {tensor.ValueOr(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT),
          tensor.Values<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
          tensor.Values<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)};
}

std::vector<GraphTensor> TensorsOf(const GraphDescriptor& graph) {
  std::vector<GraphTensor> tensors;
  AddTensors(graph, &tensors);
  return tensors;
}

cudnnStatus_t FinalizeGraphDescriptor(GraphDescriptor& descriptor) {
  switch (descriptor.type) {
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      if (descriptor.Parts(CUDNN_ATTR_OPERATIONGRAPH_OPS).empty()) return CUDNN_STATUS_BAD_PARAM;
      descriptor.SetInt64(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, kWithoutWorkspace + 1);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      if (descriptor.Part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH) == nullptr) return CUDNN_STATUS_BAD_PARAM;
      FindEngines(descriptor);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      if (descriptor.Part(CUDNN_ATTR_ENGINECFG_ENGINE) == nullptr) return CUDNN_STATUS_BAD_PARAM;
      DescribeConfiguration(descriptor);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      if (GraphOf(descriptor) == nullptr) return CUDNN_STATUS_BAD_PARAM;
      descriptor.SetInt64(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, WorkspaceOfEngine(*EngineOf(descriptor)));
      return CUDNN_STATUS_SUCCESS;
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

cudnnStatus_t ExecutePlan(cudnnHandle_t handle, const GraphDescriptor& plan, const GraphDescriptor& pack) {
  const GraphDescriptor* graph = GraphOf(plan);
  if (graph == nullptr || !plan.finalized || !pack.finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  const auto ids = pack.Values<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.Values<const void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (ids.size() != pointers.size()) return CUDNN_STATUS_BAD_PARAM;
  std::vector<Matrix> memory;
  for (const GraphTensor& tensor : TensorsOf(*graph)) {
    const auto id = std::find(ids.begin(), ids.end(), tensor.id);
    if (id == ids.end()) continue;  // an optional one that the caller did not connect
    memory.push_back(
        TensorAt(pointers[id - ids.begin()], tensor.shape, tensor.written ? Use::kWrite : Use::kRead));
  }
  const auto workspace_bytes = plan.ValueOr<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 0);
  const auto workspace = pack.ValueOr<const void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
  if (workspace_bytes > 0 && workspace == nullptr) return CUDNN_STATUS_BAD_PARAM;
  memory.push_back(Workspace(workspace, static_cast<size_t>(workspace_bytes)));
  return Run("cudnnBackendExecute", handle, memory);
}

}  // namespace weir::emulated
