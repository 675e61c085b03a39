#include "tools/emulated_gpu/device/graph_launch.h"

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/emulated_gpu/device/addresses.h"
#include "tools/emulated_gpu/device/capture.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/copies.h"
#include "tools/emulated_gpu/device/graph_plan.h"
#include "tools/emulated_gpu/device/handles.h"
#include "tools/emulated_gpu/device/kernel_cost.h"
#include "tools/emulated_gpu/device/known_bytes.h"
#include "tools/emulated_gpu/device/lifecycle.h"
#include "tools/emulated_gpu/device/memory.h"
#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/user_objects.h"
#include "tools/emulated_gpu/device/work_queue.h"

namespace weir::emulated {
namespace {

struct Exec {
  std::atomic<bool> alive{false};
  uint64_t flags = 0;
  std::shared_ptr<const Plan> plan;  // guarded by the lock of graphs
  std::vector<UserObject*> objects;  // constant until its end
  std::mutex launching;              // one launch at a time; before the lock of order.h
  // guarded by `launching`, their contents by the lock of order.h:
  std::deque<Stream> lanes;  // from lane 1 on
  Past last;                 // of the newest launch
};

auto& execs = *new HandleTable<Exec, 1 << 16>;

Exec* Find(CUgraphExec handle, const char* call) {
  Exec* exec = execs.Find(handle);
  if (exec == nullptr) Report("%s: executable graph %p is not alive", call, static_cast<void*>(handle));
  return exec;
}

std::shared_ptr<const Plan> PlanOf(const Exec& exec) {
  std::lock_guard<std::mutex> lock(GraphMutex());
  return exec.plan;
}

size_t Hull(const Access& access) { return access.pitch * (access.rows - 1) + access.size; }

// What a library's kernel was given is checked as its call checked it; a kernel's arguments as its launch did.
Status CheckKernel(const KernelWork& work, int device) {
  if (work.kernel != nullptr) {
    CheckArguments(*work.kernel, {nullptr, work.arguments.data(), work.arguments.size()}, work.shape.grid[0],
                   work.shape.grid[1]);
    return CUDA_SUCCESS;
  }
  for (const Access& access : work.accesses) {
    if (!InDeviceWindow(access.begin) || access.rows == 0) continue;
    const Touch touch = access.use == Use::kRead ? Touch::kRead : Touch::kWrite;
    const Status status = CheckTouch(access.begin, Hull(access), work.what, touch, device);
    if (status != CUDA_SUCCESS) {
      SetSticky(status);
      return status;
    }
  }
  return CUDA_SUCCESS;
}

// Runs one node on its lane.
struct Runner {
  Stream& lane;

  Status operator()(const EmptyWork&) const { return CUDA_SUCCESS; }

  Status operator()(const KernelWork& work) const {
    Counted().launches.fetch_add(1, std::memory_order_relaxed);
    const char* op = CurrentOp();
    SetCurrentOp(work.op);
    const Status status = Settings().checks ? CheckKernel(work, lane.device) : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS) {
      for (const Access& access : work.accesses) ForgetAccess(access);
      Demand demand = KernelDemand(1);
      demand.time += work.time;
      std::lock_guard<std::mutex> lock(Order().mutex);
      NoteWorkLocked(lane, work.what, work.accesses.data(), work.accesses.size());
      ProlongLocked(lane, demand);
    }
    SetCurrentOp(op);
    return status;
  }

  Status operator()(const CopyWork& work) const {
    return CopyOn(lane, work.to, work.from, work.rows, work.direction, Call::kGraph);
  }

  Status operator()(const FillWork& work) const {
    return FillOn(lane, work.to, work.value, work.element, work.rows, Call::kGraph);
  }

  Status operator()(const HostFunctionWork& work) const {
    std::lock_guard<std::mutex> lock(Order().mutex);
    QueueHostFunctionLocked(NoteWorkLocked(lane, "host function of a graph", nullptr, 0), work.function,
                            work.argument);
    return CUDA_SUCCESS;
  }

  Status operator()(const EventRecordWork& work) const {
    Event* event = FindEvent(work.event, "event record of a graph");
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    RecordOn(lane, *event);
    return CUDA_SUCCESS;
  }

  Status operator()(const EventWaitWork& work) const {
    const Event* event = FindEvent(work.event, "event wait of a graph");
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::lock_guard<std::mutex> lock(Order().mutex);
    StepLocked(lane, &event->past);
    return CUDA_SUCCESS;
  }

  Status operator()(const ChildGraphWork&) const { return CUDA_SUCCESS; }  // is part of the plan
};

class Replay {
 public:
  Replay(Exec& exec, const Plan& plan, Stream& stream)
      : exec_(exec), plan_(plan), stream_(stream), pasts_(plan.nodes.size()), newest_(plan.lanes, kNone) {}

  Status Run() {
    while (exec_.lanes.size() + 1 < plan_.lanes) exec_.lanes.emplace_back().flags = CU_STREAM_NON_BLOCKING;
    {
      std::lock_guard<std::mutex> lock(Order().mutex);
      stream_.queue.MakeRoom();
      begin_ = StepLocked(stream_, &exec_.last);
    }
    Status status = CUDA_SUCCESS;
    for (size_t i = 0; i < plan_.nodes.size() && status == CUDA_SUCCESS; ++i) status = RunNode(i);
    std::lock_guard<std::mutex> lock(Order().mutex);
    for (const size_t last : newest_) {
      if (last != kNone) StepLocked(stream_, &pasts_[last]);
    }
    exec_.last = stream_.past;
    stream_.queue.Add(stream_.past.done);
    return status;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  Status RunNode(size_t i) {
    const PlannedNode& node = plan_.nodes[i];
    Stream& lane = node.lane == 0 ? stream_ : exec_.lanes[node.lane - 1];
    {
      std::lock_guard<std::mutex> lock(Order().mutex);
      if (node.lane != 0 && newest_[node.lane] == kNone) {
        lane.id = stream_.id;
        lane.device = stream_.device;
        lane.host_time = HostNow();
        StepLocked(lane, &begin_);
      }
      for (const uint32_t before : node.after) {
        if (plan_.nodes[before].lane != node.lane) StepLocked(lane, &pasts_[before]);
      }
    }
    const Status status = std::visit(Runner{lane}, node.work);
    std::lock_guard<std::mutex> lock(Order().mutex);
    pasts_[i] = lane.past;
    newest_[node.lane] = i;
    return status;
  }

  Exec& exec_;
  const Plan& plan_;
  Stream& stream_;
  Past begin_;
  std::vector<Past> pasts_;     // of the nodes
  std::vector<size_t> newest_;  // node of each lane
};

}  // namespace

Status InstantiateGraph(CUgraphExec* handle, CUgraph graph_handle, uint64_t flags) {
  const Graph* graph = FindGraph(graph_handle, "graph instantiate");
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  constexpr uint64_t kKnown = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                              CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                              CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
    NoteNotSupported("graphs that a device launches");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(GraphMutex());
  if (graph->open) return CUDA_ERROR_ILLEGAL_STATE;
  Exec* exec = execs.Make();
  if (exec == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  exec->flags = flags;
  exec->plan = std::make_shared<const Plan>(PlanOfLocked(*graph));
  exec->objects = graph->objects;
  RetainUserObjects(exec->objects);
  *handle = reinterpret_cast<CUgraphExec>(exec);
  return CUDA_SUCCESS;
}

Status FlagsOfExec(CUgraphExec handle, uint64_t* flags) {
  const Exec* exec = Find(handle, "graph flags");
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

Status UpdateExec(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo* result) {
  Exec* exec = Find(handle, "graph update");
  const Graph* graph = FindGraph(graph_handle, "graph update");
  if (exec == nullptr || graph == nullptr) {
    *result = {};
    result->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::lock_guard<std::mutex> lock(GraphMutex());
  auto updated = std::make_shared<const Plan>(PlanOfLocked(*graph));
  *result = ComparePlans(*exec->plan, *updated);
  if (result->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  exec->plan = std::move(updated);
  return CUDA_SUCCESS;
}

Status LaunchGraph(CUgraphExec handle, CUstream stream_handle) {
  Exec* exec = Find(handle, "graph launch");
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = FindStream(stream_handle, "graph launch");
  if (stream == nullptr || stream->device != CurrentDevice()) return CUDA_ERROR_INVALID_HANDLE;
  const std::shared_ptr<const Plan> plan = PlanOf(*exec);
  if (CaptureDecides(*stream)) return CaptureWork(*stream, ChildGraphWork{plan});
  FinishOps();
  ChargeHost(Micros(Settings().profile->costs.launch_us), Busy::kCalls);
  std::lock_guard<std::mutex> lock(exec->launching);
  return Replay(*exec, *plan, *stream).Run();
}

Status UploadGraph(CUgraphExec handle, CUstream stream_handle) {
  if (Find(handle, "graph upload") == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = FindStream(stream_handle, "graph upload");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return CaptureDecides(*stream) ? CheckAskedStream(*stream) : CUDA_SUCCESS;
}

Status DestroyExec(CUgraphExec handle) {
  Exec* exec = Find(handle, "graph exec destroy");
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  {
    std::lock_guard<std::mutex> launching(exec->launching);
    std::lock_guard<std::mutex> lock(Order().mutex);
    for (Stream& lane : exec->lanes) RetireLocked(lane);
    exec->lanes.clear();
    exec->last = {};
  }
  {
    std::lock_guard<std::mutex> lock(GraphMutex());
    exec->plan = nullptr;
  }
  std::vector<UserObject*> objects;
  objects.swap(exec->objects);
  execs.Kill(exec);
  ReleaseUserObjects(objects);
  return CUDA_SUCCESS;
}

}  // namespace weir::emulated
