// Stream capture and graphs: the calls that torch makes, and their nearest kin. Handles are those of the driver.
#include "tools/emulated_gpu/device/graphs.h"

#include <algorithm>

#include "tools/emulated_gpu/cudart/cudart.h"
#include "tools/emulated_gpu/device/capture.h"
#include "tools/emulated_gpu/device/graph_launch.h"
#include "tools/emulated_gpu/device/graph_text.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/user_objects.h"

using namespace weir::emulated;

static_assert(static_cast<int>(cudaStreamCaptureModeRelaxed) == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(static_cast<int>(cudaStreamCaptureStatusInvalidated) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(BeginCapture(stream, static_cast<CUstreamCaptureMode>(mode)));
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* after, const cudaGraphEdgeData*,
                                          size_t count, cudaStreamCaptureMode mode) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (graph == nullptr) return Last(cudaErrorInvalidValue);
  return Last(BeginCapture(stream, static_cast<CUstreamCaptureMode>(mode), graph, after, count));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (graph == nullptr) return Last(cudaErrorInvalidValue);
  return Last(EndCapture(stream, graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  WEIR_CUDART_FAULT_POINT();
  return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** after, const cudaGraphEdgeData** edges,
                                     size_t* count) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (status == nullptr) return Last(cudaErrorInvalidValue);
  CaptureInfo info;
  const Status found = DescribeCapture(stream, &info);
  *status = static_cast<cudaStreamCaptureStatus>(info.status);
  if (id != nullptr) *id = info.id;
  if (graph != nullptr) *graph = info.graph;
  if (after != nullptr) *after = info.after;
  if (edges != nullptr) *edges = reinterpret_cast<const cudaGraphEdgeData*>(info.edges);
  if (count != nullptr) *count = info.count;
  return Last(found);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* after,
                                                const cudaGraphEdgeData*, size_t count, unsigned int flags) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(UpdateCaptureDependencies(stream, after, count, flags));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  WEIR_CUDART_FAULT_POINT();
  if (mode == nullptr || *mode > cudaStreamCaptureModeRelaxed) return Last(cudaErrorInvalidValue);
  auto exchanged = static_cast<CUstreamCaptureMode>(*mode);
  ExchangeCaptureMode(&exchanged);
  *mode = static_cast<cudaStreamCaptureMode>(exchanged);
  return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (graph == nullptr || flags != 0) return Last(cudaErrorInvalidValue);
  return Last(CreateGraph(graph));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(DestroyGraph(graph));
}

// Of what torch adds: the nodes without work that mark where memory was freed.
cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                             const cudaGraphEdgeData*, size_t count, cudaGraphNodeParams* parameters) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (node == nullptr || parameters == nullptr) return Last(cudaErrorInvalidValue);
  if (parameters->type != cudaGraphNodeTypeEmpty) return Refuse("cudaGraphAddNode of nodes that work");
  return Last(AddNode(node, graph, after, count, EmptyWork{}));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(NodesOf(graph, nodes, count));
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                         cudaGraphEdgeData* edges, size_t* count) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (edges != nullptr && count != nullptr) std::fill_n(edges, *count, cudaGraphEdgeData{});
  return Last(DependenciesOf(node, nodes, count));
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(WriteDot(graph, path));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (exec == nullptr) return Last(cudaErrorInvalidValue);
  return Last(InstantiateGraph(exec, graph, flags));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (result == nullptr) return Last(cudaErrorInvalidValue);
  return Last(UpdateExec(exec, graph, reinterpret_cast<CUgraphExecUpdateResultInfo*>(result)));
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(UploadGraph(exec, stream));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(LaunchGraph(exec, stream));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(DestroyExec(exec));
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* argument, cudaHostFn_t destroy,
                                 unsigned int references, unsigned int flags) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (flags != cudaUserObjectNoDestructorSync) return Last(cudaErrorInvalidValue);
  return Last(CreateUserObject(object, argument, destroy, references));
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int references) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(ReleaseUserObject(object, references));
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int references,
                                      unsigned int flags) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if ((flags & ~unsigned{cudaGraphUserObjectMove}) != 0) return Last(cudaErrorInvalidValue);
  return Last(RetainForGraph(graph, object, references, flags != 0));
}
