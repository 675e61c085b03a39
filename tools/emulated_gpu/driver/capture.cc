// Stream capture.
#include "tools/emulated_gpu/device/capture.h"

#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return BeginCapture(stream, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* after,
                                     const CUgraphEdgeData*, size_t count, CUstreamCaptureMode mode) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return BeginCapture(stream, mode, graph, after, count);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return EndCapture(stream, graph);
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CaptureInfo info;
  const Status found = DescribeCapture(stream, &info);
  *status = info.status;
  return found;
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                CUgraph* graph, const CUgraphNode** after, const CUgraphEdgeData** edges,
                                size_t* count) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CaptureInfo info;
  const Status found = DescribeCapture(stream, &info);
  *status = info.status;
  if (id != nullptr) *id = info.id;
  if (graph != nullptr) *graph = info.graph;
  if (after != nullptr) *after = info.after;
  if (edges != nullptr) *edges = info.edges;
  if (count != nullptr) *count = info.count;
  return found;
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* after, const CUgraphEdgeData*,
                                           size_t count, unsigned int flags) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return UpdateCaptureDependencies(stream, after, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  WEIR_DRIVER_FAULT_POINT();
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  ExchangeCaptureMode(mode);
  return CUDA_SUCCESS;
}
