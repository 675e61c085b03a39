// Stream capture: work that is enqueued on a stream that captures becomes a node of a graph and does not run. Any thread;
// the lock is that of graphs.h.
//
// What a capture forbids is refused with the driver's code and invalidates the capture, so that its end fails too:
// programming guide, "Prohibited and unhandled operations", "Invalidation".
#ifndef WEIR_EMULATED_GPU_DEVICE_CAPTURE_H_
#define WEIR_EMULATED_GPU_DEVICE_CAPTURE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tools/emulated_gpu/device/graph_work.h"
#include "tools/emulated_gpu/device/graphs.h"
#include "tools/emulated_gpu/device/status.h"
#include "tools/emulated_gpu/device/streams.h"

namespace weir::emulated {

// `into`: null for a new graph, else the graph that gets the nodes; its first comes after `after`.
Status BeginCapture(CUstream handle, CUstreamCaptureMode mode, CUgraph into = nullptr,
                    const CUgraphNode* after = nullptr, size_t count = 0);
// The graph is null when the end fails.
Status EndCapture(CUstream handle, CUgraph* graph);

struct CaptureInfo {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // of an active capture:
  uint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* after = nullptr;  // the stream's own, until the next call on it
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
};
Status DescribeCapture(CUstream handle, CaptureInfo* info);
// `flags` as of cuStreamUpdateCaptureDependencies.
Status UpdateCaptureDependencies(CUstream handle, const CUgraphNode* after, size_t count, unsigned flags);
// Sets this thread's mode and gives the one before.
void ExchangeCaptureMode(CUstreamCaptureMode* mode);

// ---- for the calls of streams, copies, launches and memory. Each costs one load when nothing captures.

extern std::atomic<int> captures_under_way;
inline bool CapturesUnderWay() { return captures_under_way.load(std::memory_order_acquire) != 0; }

// Whether CaptureWork, and not the caller, says what becomes of work of `stream`: it captures, or is the legacy stream
// while a blocking stream captures.
bool CaptureDecides(const Stream& stream);
// The work's node; null when the call is to fail with `status`.
GraphNode* CaptureWork(Stream& stream, GraphWork work, Status* status);
inline Status CaptureWork(Stream& stream, GraphWork work) {
  Status status = CUDA_SUCCESS;
  CaptureWork(stream, std::move(work), &status);
  return status;
}
// What CaptureWork would say, without adding anything.
Status CheckCapture(const Stream& stream);
// More of a kernel that was captured. A node that is gone by now is left alone.
void AddToCapturedKernel(GraphNode* node, Nanos time);
void AddToCapturedKernel(GraphNode* node, const Access& access);
void SetCapturedLaunch(GraphNode* node, const Kernel* kernel, const Shape& shape,
                       std::vector<char> arguments);

// A call that is not part of any stream and that the mode of this thread or of a capture may prohibit
// (cuThreadExchangeStreamCaptureMode).
Status CheckUnsafeCall();
// A call that waits for or asks about the stream, the event, everything.
Status CheckAskedStream(const Stream& stream);
Status CheckAskedEvent(const Event& event);
Status CheckAskedDevice(int device);

// A record and a wait: true when the capture had its say, which is `status`.
bool CaptureRecord(Stream& stream, Event& event, CUevent handle, bool external, Status* status);
bool CaptureWait(Stream& stream, Event& event, CUevent handle, bool external, Status* status);

// The stream, the event dies.
void LeaveCapture(Stream& stream);
void ForgetCapture(Event& event);

}  // namespace weir::emulated

#endif
