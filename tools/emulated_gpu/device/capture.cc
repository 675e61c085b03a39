#include "tools/emulated_gpu/device/capture.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/reports.h"

namespace weir::emulated {

std::atomic<int> captures_under_way{0};

struct Capture {
  // constant:
  uint64_t id;
  CUstreamCaptureMode mode;
  std::thread::id thread;
  Stream* origin;
  Graph* graph;
  bool owns_graph;
  // guarded by the lock of graphs:
  bool ended = false, invalidated = false;
  std::vector<Stream*> streams;        // the origin too
  std::vector<CUgraphEdgeData> edges;  // for DescribeCapture: plain ones
};

namespace {

auto& open_captures = *new std::vector<std::shared_ptr<Capture>>;  // guarded by the lock of graphs
uint64_t last_id = 0;                                              // guarded by the lock of graphs
thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

using Lock = std::lock_guard<std::mutex>;

// A capture is of one device.
int DeviceOf(const Capture& capture) { return capture.origin->device; }

bool HasBlockingStream(const Capture& capture, int device) {
  return DeviceOf(capture) == device && std::any_of(capture.streams.begin(), capture.streams.end(),
                                                    [](const Stream* stream) { return IsBlocking(*stream); });
}

bool IsUnusable(const Stream& legacy) {
  return std::any_of(open_captures.begin(), open_captures.end(),
                     [&legacy](const auto& capture) { return HasBlockingStream(*capture, legacy.device); });
}

// The legacy stream was to be used beside captures of blocking streams.
Status RefuseImplicit(const Stream& legacy) {
  for (const auto& capture : open_captures) {
    if (HasBlockingStream(*capture, legacy.device)) capture->invalidated = true;
  }
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

Status Invalidate(Capture& capture, Status why) {
  capture.invalidated = true;
  return why;
}

void AddOnce(std::vector<GraphNode*>& nodes, GraphNode* node) {
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
}

Status NodesFrom(const CUgraphNode* handles, size_t count, const Graph* graph, const char* call,
                 std::vector<GraphNode*>* nodes) {
  if (count > 0 && handles == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node = FindNode(handles[i], call);
    if (node == nullptr || node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    AddOnce(*nodes, node);
  }
  return CUDA_SUCCESS;
}

// Whether all that was captured comes before what `last` names.
bool AllJoined(const Graph& graph, const std::vector<GraphNode*>& last) {
  std::vector<bool> reached(graph.nodes.size());
  for (const GraphNode* node : last) reached[node->number] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (!reached[i]) continue;
    for (const GraphNode* before : graph.nodes[i]->after) reached[before->number] = true;
  }
  return std::all_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const GraphNode* node) { return reached[node->number] || !node->captured; });
}

// What comes of the end of a capture that began on this stream.
Status StatusAtEnd(const Capture& capture, const CaptureBranch& branch) {
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  return AllJoined(*capture.graph, branch.after) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

void Close(const std::shared_ptr<Capture>& capture) {
  capture->ended = true;
  capture->graph->open = false;
  for (GraphNode* node : capture->graph->nodes) node->captured = false;
  for (Stream* stream : capture->streams) stream->branch = {};
  open_captures.erase(std::find(open_captures.begin(), open_captures.end(), capture));
  captures_under_way.fetch_sub(1, std::memory_order_release);
}

// Why an event of a capture cannot be used, or success.
Status CheckCapturedEvent(const CaptureBranch& captured) {
  if (captured.capture->ended) return CUDA_ERROR_CAPTURED_EVENT;
  return captured.capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

// Whether the capture of a stream takes work. None: another thread ended it since the caller asked.
Status CheckLocked(const Stream& stream) {
  if (IsLegacy(stream)) return RefuseImplicit(stream);
  const Capture* capture = stream.branch.capture.get();
  return capture == nullptr || capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

GraphNode* AddNodeLocked(Stream& stream, GraphWork work, Status* status) {
  *status = CheckLocked(stream);
  if (*status != CUDA_SUCCESS) return nullptr;
  CaptureBranch& branch = stream.branch;
  GraphNode* node = NewNodeLocked(branch.capture->graph, branch.after, std::move(work));
  if (node == nullptr) {
    *status = Invalidate(*branch.capture, CUDA_ERROR_OUT_OF_MEMORY);
    return nullptr;
  }
  node->captured = true;
  branch.after = {node};
  return node;
}

// An event of a capture is waited for: the stream joins that capture, or is in it.
Status Join(Stream& stream, const CaptureBranch& captured) {
  CaptureBranch& branch = stream.branch;
  const Status usable = CheckCapturedEvent(captured);
  if (usable != CUDA_SUCCESS) {
    return branch.capture == nullptr ? usable : Invalidate(*branch.capture, usable);
  }
  if (IsLegacy(stream)) return Invalidate(*captured.capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (stream.device != DeviceOf(*captured.capture)) {
    NoteNotSupported("a capture over several devices");
    return Invalidate(*captured.capture, CUDA_ERROR_NOT_SUPPORTED);
  }
  if (branch.capture == nullptr) {
    branch = captured;
    branch.capture->streams.push_back(&stream);
    return CUDA_SUCCESS;
  }
  if (branch.capture != captured.capture) {
    branch.capture->invalidated = true;
    return Invalidate(*captured.capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  for (GraphNode* node : captured.after) AddOnce(branch.after, node);
  return CUDA_SUCCESS;
}

}  // namespace

Status BeginCapture(CUstream handle, CUstreamCaptureMode mode, CUgraph into, const CUgraphNode* after,
                    size_t count) {
  Stream* stream = FindStream(handle, "begin capture");
  Graph* graph = into == nullptr ? nullptr : FindGraph(into, "begin capture");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED ||
      (into != nullptr && graph == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (IsLegacy(*stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Lock lock(GraphMutex());
  if (stream->branch.capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (graph != nullptr && graph->open) return CUDA_ERROR_ILLEGAL_STATE;
  CaptureBranch branch;
  if (graph != nullptr) {
    const Status status = NodesFrom(after, count, graph, "begin capture", &branch.after);
    if (status != CUDA_SUCCESS) return status;
  }
  const bool owns = graph == nullptr;
  if (owns) graph = NewGraphLocked();
  if (graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  graph->open = true;
  branch.capture = std::make_shared<Capture>(
      Capture{++last_id, mode, std::this_thread::get_id(), stream, graph, owns, false, false, {stream}, {}});
  open_captures.push_back(branch.capture);
  stream->branch = std::move(branch);
  captures_under_way.fetch_add(1, std::memory_order_release);
  return CUDA_SUCCESS;
}

Status EndCapture(CUstream handle, CUgraph* result) {
  *result = nullptr;
  Stream* stream = FindStream(handle, "end capture");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Lock lock(GraphMutex());
  const std::shared_ptr<Capture> capture = stream->branch.capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return Invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  const Status status = StatusAtEnd(*capture, stream->branch);
  Close(capture);
  if (status == CUDA_SUCCESS) {
    *result = HandleOf(capture->graph);
  } else if (capture->owns_graph) {
    DestroyGraphLocked(capture->graph);
  }
  return status;
}

Status DescribeCapture(CUstream handle, CaptureInfo* info) {
  *info = {};
  const Stream* stream = FindStream(handle, "capture status");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!CapturesUnderWay()) return CUDA_SUCCESS;
  Lock lock(GraphMutex());
  if (IsLegacy(*stream)) return IsUnusable(*stream) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
  const CaptureBranch& branch = stream->branch;
  if (branch.capture == nullptr) return CUDA_SUCCESS;
  info->status =
      branch.capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (branch.capture->invalidated) return CUDA_SUCCESS;
  info->id = branch.capture->id;
  info->graph = HandleOf(branch.capture->graph);
  info->count = branch.after.size();
  info->after = reinterpret_cast<const CUgraphNode*>(branch.after.data());  // a handle is its slot's address
  branch.capture->edges.resize(std::max(branch.capture->edges.size(), info->count));
  info->edges = branch.capture->edges.data();
  return CUDA_SUCCESS;
}

Status UpdateCaptureDependencies(CUstream handle, const CUgraphNode* after, size_t count, unsigned flags) {
  Stream* stream = FindStream(handle, "update capture dependencies");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Lock lock(GraphMutex());
  CaptureBranch& branch = stream->branch;
  if (branch.capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (branch.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<GraphNode*> before = branch.after;
  std::vector<GraphNode*> updated;
  if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES) updated = before;
  const Status status =
      NodesFrom(after, count, branch.capture->graph, "update capture dependencies", &updated);
  if (status != CUDA_SUCCESS) return status;
  // What is taken out here need not be joined.
  for (GraphNode* node : before) {
    if (std::find(updated.begin(), updated.end(), node) == updated.end()) node->captured = false;
  }
  branch.after = std::move(updated);
  return CUDA_SUCCESS;
}

void ExchangeCaptureMode(CUstreamCaptureMode* mode) { std::swap(thread_mode, *mode); }

bool CaptureDecides(const Stream& stream) {
  if (!CapturesUnderWay()) return false;
  Lock lock(GraphMutex());
  return IsLegacy(stream) ? IsUnusable(stream) : stream.branch.capture != nullptr;
}

GraphNode* CaptureWork(Stream& stream, GraphWork work, Status* status) {
  Lock lock(GraphMutex());
  return AddNodeLocked(stream, std::move(work), status);
}

Status CheckCapture(const Stream& stream) {
  Lock lock(GraphMutex());
  return CheckLocked(stream);
}

void AddToCapturedKernel(GraphNode* node, Nanos time) {
  Lock lock(GraphMutex());
  if (auto* kernel = std::get_if<KernelWork>(&node->work)) kernel->time += time;
}

void AddToCapturedKernel(GraphNode* node, const Access& access) {
  Lock lock(GraphMutex());
  if (auto* kernel = std::get_if<KernelWork>(&node->work)) kernel->accesses.push_back(access);
}

void SetCapturedLaunch(GraphNode* node, const Kernel* kernel, const Shape& shape,
                       std::vector<char> arguments) {
  Lock lock(GraphMutex());
  auto* work = std::get_if<KernelWork>(&node->work);
  if (work == nullptr) return;
  work->kernel = kernel;
  work->shape = shape;
  work->arguments = std::move(arguments);
}

Status CheckUnsafeCall() {
  if (!CapturesUnderWay() || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  Lock lock(GraphMutex());
  Status status = CUDA_SUCCESS;
  for (const auto& capture : open_captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool prohibits =
        own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
            : thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (prohibits) status = Invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return status;
}

Status CheckAskedStream(const Stream& stream) {
  if (!CapturesUnderWay()) return CUDA_SUCCESS;
  {
    Lock lock(GraphMutex());
    if (IsLegacy(stream) && IsUnusable(stream)) return RefuseImplicit(stream);
    if (stream.branch.capture != nullptr) {
      return Invalidate(*stream.branch.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
  }
  return CheckUnsafeCall();
}

Status CheckAskedEvent(const Event& event) {
  if (event.in_capture.load(std::memory_order_acquire)) {
    Lock lock(GraphMutex());
    Capture& capture = *event.captured.capture;
    return capture.ended ? CUDA_ERROR_CAPTURED_EVENT : Invalidate(capture, CUDA_ERROR_CAPTURED_EVENT);
  }
  return CheckUnsafeCall();
}

Status CheckAskedDevice(int device) {
  if (!CapturesUnderWay()) return CUDA_SUCCESS;
  Lock lock(GraphMutex());
  Status status = CUDA_SUCCESS;
  for (const auto& capture : open_captures) {
    if (DeviceOf(*capture) == device) status = Invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return status;
}

bool CaptureRecord(Stream& stream, Event& event, CUevent handle, bool external, Status* status) {
  if (!CaptureDecides(stream)) {
    ForgetCapture(event);
    return false;
  }
  Lock lock(GraphMutex());
  const CaptureBranch& branch = stream.branch;
  if (IsLegacy(stream) || external || branch.capture == nullptr || branch.capture->invalidated) {
    AddNodeLocked(stream, EventRecordWork{handle}, status);
    return true;
  }
  event.captured = branch;
  event.in_capture.store(true, std::memory_order_release);
  *status = CUDA_SUCCESS;
  return true;
}

bool CaptureWait(Stream& stream, Event& event, CUevent handle, bool external, Status* status) {
  const bool captured = event.in_capture.load(std::memory_order_acquire);
  const bool decides = CaptureDecides(stream);
  if (!captured && !decides) return false;
  Lock lock(GraphMutex());
  *status = CUDA_SUCCESS;
  if (external || (decides && IsLegacy(stream))) {
    AddNodeLocked(stream, EventWaitWork{handle}, status);
  } else if (captured) {
    *status = Join(stream, event.captured);
  } else if (stream.branch.capture != nullptr && event.recorded) {
    *status = Invalidate(*stream.branch.capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  return true;
}

void ForgetCapture(Event& event) {
  if (!event.in_capture.load(std::memory_order_acquire)) return;
  Lock lock(GraphMutex());
  event.captured = {};
  event.in_capture.store(false, std::memory_order_release);
}

void LeaveCapture(Stream& stream) {
  if (!CapturesUnderWay()) return;
  Lock lock(GraphMutex());
  const std::shared_ptr<Capture> capture = stream.branch.capture;
  if (capture == nullptr) return;
  capture->invalidated = true;
  stream.branch = {};
  std::vector<Stream*>& streams = capture->streams;
  streams.erase(std::find(streams.begin(), streams.end(), &stream));
  if (capture->origin != &stream) return;
  Close(capture);
  if (capture->owns_graph) DestroyGraphLocked(capture->graph);
}

}  // namespace weir::emulated
