// Graphs, executable graphs and the objects that they keep alive.
#include "tools/emulated_gpu/device/graphs.h"

#include <algorithm>

#include "tools/emulated_gpu/device/graph_launch.h"
#include "tools/emulated_gpu/device/graph_text.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/user_objects.h"
#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

namespace {

// Edges are all plain: what comes after waits for the whole of what comes before.
void PlainEdges(CUgraphEdgeData* edges, const size_t* count) {
  if (edges != nullptr && count != nullptr) std::fill_n(edges, *count, CUgraphEdgeData{});
}

}  // namespace

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return CreateGraph(graph);
}

CUresult cuGraphDestroy(CUgraph graph) {
  WEIR_DRIVER_NEEDS_INIT();
  return DestroyGraph(graph);
}

CUresult cuGraphClone(CUgraph* clone, CUgraph graph) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (clone == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return CloneGraph(clone, graph);
}

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AddNode(node, graph, after, count, EmptyWork{});
}

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData*,
                        size_t count, CUgraphNodeParams* parameters) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (node == nullptr || parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return AddNode(node, graph, after, count, EmptyWork{});
    case CU_GRAPH_NODE_TYPE_HOST:
      if (parameters->host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
      return AddNode(node, graph, after, count,
                     HostFunctionWork{parameters->host.fn, parameters->host.userData});
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return AddNode(node, graph, after, count, EventRecordWork{parameters->eventRecord.event});
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return AddNode(node, graph, after, count, EventWaitWork{parameters->eventWait.event});
    default:
      NoteNotSupported("cuGraphAddNode of this type; streams that capture make such nodes");
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  WEIR_DRIVER_NEEDS_INIT();
  return NodesOf(graph, nodes, count);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  WEIR_DRIVER_NEEDS_INIT();
  return RootNodesOf(graph, nodes, count);
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges,
                         size_t* count) {
  WEIR_DRIVER_NEEDS_INIT();
  PlainEdges(edges, count);
  return EdgesOf(graph, from, to, count);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                    size_t* count) {
  WEIR_DRIVER_NEEDS_INIT();
  PlainEdges(edges, count);
  return DependenciesOf(node, nodes, count);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                      size_t* count) {
  WEIR_DRIVER_NEEDS_INIT();
  PlainEdges(edges, count);
  return DependentsOf(node, nodes, count);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  WEIR_DRIVER_NEEDS_INIT();
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return TypeOfNode(node, type);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* parameters) {
  WEIR_DRIVER_NEEDS_INIT();
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return KernelOfNode(node, parameters);
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned int) {
  WEIR_DRIVER_NEEDS_INIT();
  return WriteDot(graph, path);
}

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return InstantiateGraph(exec, graph, flags);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (exec == nullptr || parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Status status = InstantiateGraph(exec, graph, parameters->flags);
  parameters->hErrNode_out = nullptr;
  parameters->result_out =
      status == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return status;
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  WEIR_DRIVER_NEEDS_INIT();
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return FlagsOfExec(exec, flags);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* result) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return UpdateExec(exec, graph, result);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return UploadGraph(exec, stream);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return LaunchGraph(exec, stream);
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  WEIR_DRIVER_NEEDS_INIT();
  return DestroyExec(exec);
}

CUresult cuUserObjectCreate(CUuserObject* object, void* argument, CUhostFn destroy, unsigned int references,
                            unsigned int flags) {
  WEIR_DRIVER_NEEDS_INIT();
  if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) return CUDA_ERROR_INVALID_VALUE;
  return CreateUserObject(object, argument, destroy, references);
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int references) {
  WEIR_DRIVER_NEEDS_INIT();
  return RetainUserObject(object, references);
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int references) {
  WEIR_DRIVER_NEEDS_INIT();
  return ReleaseUserObject(object, references);
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int references,
                                 unsigned int flags) {
  WEIR_DRIVER_NEEDS_INIT();
  if ((flags & ~unsigned{CU_GRAPH_USER_OBJECT_MOVE}) != 0) return CUDA_ERROR_INVALID_VALUE;
  return RetainForGraph(graph, object, references, flags != 0);
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int references) {
  WEIR_DRIVER_NEEDS_INIT();
  return ReleaseForGraph(graph, object, references);
}
