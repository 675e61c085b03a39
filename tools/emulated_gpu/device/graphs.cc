#include "tools/emulated_gpu/device/graphs.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tools/emulated_gpu/device/handles.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/user_objects.h"

namespace weir::emulated {
namespace {

auto& graphs = *new HandleTable<Graph, 1 << 16>;
auto& nodes = *new HandleTable<GraphNode, 1 << 22>;

Status FillArray(const std::vector<GraphNode*>& found, CUgraphNode* array, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (array != nullptr) {
    for (size_t i = 0; i < *count; ++i) array[i] = i < found.size() ? HandleOf(found[i]) : nullptr;
  }
  *count = array == nullptr ? found.size() : std::min(*count, found.size());
  return CUDA_SUCCESS;
}

// Where each argument lies in the node's own buffer.
void LayOutParameters(GraphNode* node, KernelWork& kernel) {
  node->parameters.clear();
  if (kernel.kernel == nullptr || kernel.kernel->parameters == nullptr) return;
  for (const Parameter& parameter : *kernel.kernel->parameters) {
    node->parameters.push_back(kernel.arguments.data() + parameter.offset);
  }
}

}  // namespace

CUgraphNodeType TypeOf(const GraphWork& work) {
  constexpr CUgraphNodeType kTypes[] = {CU_GRAPH_NODE_TYPE_EMPTY,      CU_GRAPH_NODE_TYPE_KERNEL,
                                        CU_GRAPH_NODE_TYPE_MEMCPY,     CU_GRAPH_NODE_TYPE_MEMSET,
                                        CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                        CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_GRAPH};
  static_assert(sizeof kTypes / sizeof kTypes[0] == std::variant_size_v<GraphWork>);
  return kTypes[work.index()];
}

std::mutex& GraphMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

Graph* FindGraph(CUgraph handle, const char* call) {
  Graph* graph = graphs.Find(handle);
  if (graph == nullptr) Report("%s: graph %p is not alive", call, static_cast<void*>(handle));
  return graph;
}

GraphNode* FindNode(CUgraphNode handle, const char* call) {
  GraphNode* node = nodes.Find(handle);
  if (node == nullptr) Report("%s: graph node %p is not alive", call, static_cast<void*>(handle));
  return node;
}

Graph* NewGraphLocked() { return graphs.Make(); }

void DestroyGraphLocked(Graph* graph) {
  for (GraphNode* node : graph->nodes) {
    // Slots are never destroyed: what they hold is given back here.
    node->after = {};
    node->work = EmptyWork{};
    node->parameters = {};
    nodes.Kill(node);
  }
  graph->nodes = {};
  graphs.Kill(graph);
}

GraphNode* NewNodeLocked(Graph* graph, std::vector<GraphNode*> after, GraphWork work) {
  GraphNode* node = nodes.Make();
  if (node == nullptr) return nullptr;
  node->graph = graph;
  node->number = graph->nodes.size();
  node->after = std::move(after);
  node->work = std::move(work);
  graph->nodes.push_back(node);
  return node;
}

Status CreateGraph(CUgraph* handle) {
  std::lock_guard<std::mutex> lock(GraphMutex());
  Graph* graph = NewGraphLocked();
  if (graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = HandleOf(graph);
  return CUDA_SUCCESS;
}

Status DestroyGraph(CUgraph handle) {
  Graph* graph = FindGraph(handle, "graph destroy");
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<UserObject*> objects;
  {
    std::lock_guard<std::mutex> lock(GraphMutex());
    if (graph->open) return CUDA_ERROR_ILLEGAL_STATE;  // its capture owns it
    objects.swap(graph->objects);
    DestroyGraphLocked(graph);
  }
  ReleaseUserObjects(objects);
  return CUDA_SUCCESS;
}

Status CloneGraph(CUgraph* clone, CUgraph handle) {
  const Graph* graph = FindGraph(handle, "graph clone");
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(GraphMutex());
  Graph* made = NewGraphLocked();
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  for (const GraphNode* node : graph->nodes) {
    std::vector<GraphNode*> after;
    for (const GraphNode* before : node->after) after.push_back(made->nodes[before->number]);
    NewNodeLocked(made, std::move(after), node->work);
  }
  made->objects = graph->objects;
  RetainUserObjects(made->objects);
  *clone = HandleOf(made);
  return CUDA_SUCCESS;
}

Status AddNode(CUgraphNode* handle, CUgraph graph_handle, const CUgraphNode* after, size_t count,
               GraphWork work) {
  Graph* graph = FindGraph(graph_handle, "graph add node");
  if (graph == nullptr || (count > 0 && after == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(GraphMutex());
  std::vector<GraphNode*> before;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node = FindNode(after[i], "graph add node");
    if (node == nullptr || node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    before.push_back(node);
  }
  GraphNode* node = NewNodeLocked(graph, std::move(before), std::move(work));
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = HandleOf(node);
  return CUDA_SUCCESS;
}

Status NodesOf(CUgraph handle, CUgraphNode* array, size_t* count) {
  const Graph* graph = FindGraph(handle, "graph nodes");
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(GraphMutex());
  return FillArray(graph->nodes, array, count);
}

Status RootNodesOf(CUgraph handle, CUgraphNode* array, size_t* count) {
  const Graph* graph = FindGraph(handle, "graph root nodes");
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(GraphMutex());
  std::vector<GraphNode*> roots;
  for (GraphNode* node : graph->nodes) {
    if (node->after.empty()) roots.push_back(node);
  }
  return FillArray(roots, array, count);
}

Status EdgesOf(CUgraph handle, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  const Graph* graph = FindGraph(handle, "graph edges");
  if (graph == nullptr || count == nullptr || (from == nullptr) != (to == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::lock_guard<std::mutex> lock(GraphMutex());
  std::vector<GraphNode*> froms, tos;
  for (GraphNode* node : graph->nodes) {
    for (GraphNode* before : node->after) {
      froms.push_back(before);
      tos.push_back(node);
    }
  }
  size_t same = *count;
  FillArray(froms, from, &same);
  return FillArray(tos, to, count);
}

Status DependenciesOf(CUgraphNode handle, CUgraphNode* array, size_t* count) {
  const GraphNode* node = FindNode(handle, "graph node dependencies");
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(GraphMutex());
  return FillArray(node->after, array, count);
}

Status DependentsOf(CUgraphNode handle, CUgraphNode* array, size_t* count) {
  GraphNode* node = FindNode(handle, "graph node dependents");
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(GraphMutex());
  std::vector<GraphNode*> later;
  for (GraphNode* other : node->graph->nodes) {
    if (std::find(other->after.begin(), other->after.end(), node) != other->after.end()) {
      later.push_back(other);
    }
  }
  return FillArray(later, array, count);
}

Status TypeOfNode(CUgraphNode handle, CUgraphNodeType* type) {
  const GraphNode* node = FindNode(handle, "graph node type");
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(GraphMutex());
  *type = TypeOf(node->work);
  return CUDA_SUCCESS;
}

Status KernelOfNode(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* parameters) {
  GraphNode* node = FindNode(handle, "graph kernel node parameters");
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(GraphMutex());
  auto* kernel = std::get_if<KernelWork>(&node->work);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LayOutParameters(node, *kernel);
  *parameters = {};
  parameters->func = reinterpret_cast<CUfunction>(const_cast<Kernel*>(kernel->kernel));
  parameters->gridDimX = kernel->shape.grid[0];
  parameters->gridDimY = kernel->shape.grid[1];
  parameters->gridDimZ = kernel->shape.grid[2];
  parameters->blockDimX = kernel->shape.block[0];
  parameters->blockDimY = kernel->shape.block[1];
  parameters->blockDimZ = kernel->shape.block[2];
  parameters->sharedMemBytes = static_cast<unsigned>(kernel->shape.shared_bytes);
  if (!node->parameters.empty()) parameters->kernelParams = node->parameters.data();
  parameters->ctx = nullptr;  // that of the graph's thread, as for every node of a single context
  return CUDA_SUCCESS;
}

}  // namespace weir::emulated
