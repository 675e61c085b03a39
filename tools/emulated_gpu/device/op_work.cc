#include "tools/emulated_gpu/device/op_work.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tools/emulated_gpu/device/capture.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/kernel_cost.h"
#include "tools/emulated_gpu/device/known_bytes.h"
#include "tools/emulated_gpu/device/memory.h"
#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/streams.h"
#include "tools/emulated_gpu/device/work_queue.h"

namespace weir::emulated {
namespace {

static_assert(static_cast<int>(Use::kRead) == WEIR_EMULATED_READ &&
              static_cast<int>(Use::kWrite) == WEIR_EMULATED_WRITE &&
              static_cast<int>(Use::kUnknown) == WEIR_EMULATED_UNKNOWN);
static_assert(static_cast<int>(Carried::kUnknown) == WEIR_EMULATED_CARRIES_UNKNOWN &&
              static_cast<int>(Carried::kIntegers) == WEIR_EMULATED_CARRIES_INTEGERS &&
              static_cast<int>(Carried::kFloats) == WEIR_EMULATED_CARRIES_FLOATS);

struct LaunchedPointer {
  uintptr_t address;
  GraphNode* node;  // of a launch that was captured, else null
  NotedWork work;   // else
};

// What an op has done for the clock and is yet to take time.
struct OpTime {
  Stream* stream = nullptr;   // of its newest launch
  GraphNode* node = nullptr;  // that this launch became
  WeirEmulatedWork work{};
  bool open = false;  // `work` is yet to take its time

  void Add(Stream& on, const WeirEmulatedWork& more) {
    stream = &on;
    open = true;
    work.bytes += more.bytes;
    if (more.operations == 0) return;
    work.operations = more.operations;
    work.type = more.type;
  }

  void Finish() {
    if (!open || stream == nullptr) return;
    open = false;
    Demand demand;
    demand.time = WorkTime(work);
    if (demand.time == 0) return;
    if (node != nullptr) {
      AddToCapturedKernel(node, demand.time);
      return;
    }
    std::lock_guard<std::mutex> lock(Order().mutex);
    ProlongLocked(*stream, demand);
  }
};

struct OpOnStack {
  const char* name;
  OpTime time;
  std::vector<WeirEmulatedAccess> accesses;  // by begin
  std::vector<LaunchedPointer> unknown;      // of launches, in no tensor of any op
  Carried carried;
  bool launched, computed;
};

// Frames are kept for the next op, so that no op allocates.
struct OpStack {
  std::vector<OpOnStack> ops;
  size_t depth = 0;
};
thread_local OpStack stack;
thread_local uint64_t ops_begun = 0;
thread_local OpTime on_cpu;  // the op that runs on the CPU, one at a time
thread_local std::vector<Access> found;

// Tensors of one op seldom overlap, and a pointer is mostly a tensor's first byte: this many before it are looked at.
constexpr size_t kLookedAt = 8;
// Of a tensor in more rows the gaps must be known too.
constexpr size_t kMostRows = 4096;

Access FromAbi(const WeirEmulatedAccess& access) {
  return {access.begin, access.size, static_cast<Use>(access.use), access.pitch, access.rows};
}

uintptr_t EndOf(const WeirEmulatedAccess& access) {
  return access.begin + (access.rows > 1 ? access.pitch * (access.rows - 1) : 0) + access.size;
}

void AddTensor(const OpOnStack& op, int tensor) {
  for (const WeirEmulatedAccess& access : op.accesses) {
    if (access.tensor == tensor) found.push_back(FromAbi(access));
  }
}

// Appends the tensors of `op` that hold `pointer` to `found`.
bool FindIn(const OpOnStack& op, uintptr_t pointer) {
  const auto after = std::upper_bound(
      op.accesses.begin(), op.accesses.end(), pointer,
      [](uintptr_t value, const WeirEmulatedAccess& access) { return value < access.begin; });
  const auto from = after - std::min<ptrdiff_t>(after - op.accesses.begin(), kLookedAt);
  bool any = false;
  for (auto access = from; access != after; ++access) {
    if (pointer >= EndOf(*access)) continue;
    any = true;
    access->alone ? found.push_back(FromAbi(*access)) : AddTensor(op, access->tensor);
  }
  return any;
}

double BytesOf(const WeirEmulatedAccess* accesses, size_t count) {
  double bytes = 0;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<double>(accesses[i].size * accesses[i].rows);
  return bytes;
}

double BytesOfNew(const OpOnStack& op, const WeirEmulatedAccess* results, size_t count) {
  double bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto known = std::lower_bound(
        op.accesses.begin(), op.accesses.end(), results[i].begin,
        [](const WeirEmulatedAccess& access, uintptr_t begin) { return access.begin < begin; });
    if (known == op.accesses.end() || known->begin != results[i].begin) bytes += BytesOf(results + i, 1);
  }
  return bytes;
}

// A kernel of the innermost op, or of none, that is not computed writes these.
void ForgetLaunched(const Access* accesses, size_t count) {
  if (stack.depth > 0) stack.ops[stack.depth - 1].launched = true;
  for (size_t i = 0; i < count; ++i) ForgetAccess(accesses[i]);
}

// The memory of a work on the CPU must be such that its device reaches it.
void CheckPeers(const char* what, int device) {
  for (const Access& access : found) {
    if (CheckTouch(access.begin, access.size == 0 ? 0 : 1, what, Touch::kRead, device) != CUDA_SUCCESS)
      return;
  }
}

// True when `stream` captures: then `node` is what the launch became, null where the capture is invalid already, which
// its end says.
bool CaptureKernel(Stream& stream, const char* what, const Access* accesses, size_t count, Nanos time,
                   GraphNode** node) {
  if (!CaptureDecides(stream)) return false;
  KernelWork work;
  work.what = what;
  work.op = CurrentOp();
  work.accesses.assign(accesses, accesses + count);
  work.time = time;
  Status status = CUDA_SUCCESS;
  *node = CaptureWork(stream, std::move(work), &status);
  return true;
}

void ChargeLaunch() { ChargeHost(Micros(Settings().profile->costs.launch_us), Busy::kCalls); }

}  // namespace

void SetOpOnCpu(const char* name) {
  SetCurrentOp(name);
  if (*name != '\0') {
    on_cpu = {};
  } else {
    on_cpu.Finish();
  }
}

void ChargeOp(int nested) {
  const Costs& costs = Settings().profile->costs;
  ChargeHost(Micros(nested != 0 ? costs.nested_op_us : costs.op_us), Busy::kOperators);
}

int RunOpNow(void* handle, const char* what, const WeirEmulatedAccess* accesses, size_t count,
             const WeirEmulatedWork* work) {
  Stream* stream = FindStream(static_cast<CUstream>(handle), what);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CaptureDecides(*stream)) {
    CheckAskedStream(*stream);  // the op would run now, and the capture would not hold it
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  found.clear();
  for (size_t i = 0; i < count; ++i) found.push_back(FromAbi(accesses[i]));
  const WeirEmulatedWork does = work == nullptr ? WeirEmulatedWork{BytesOf(accesses, count), 0, 0} : *work;
  const bool in_op = *CurrentOp() != '\0', first = !in_op || on_cpu.stream == nullptr;
  const Demand kernel = KernelDemand(1, in_op ? WeirEmulatedWork{} : does);
  if (first) ChargeLaunch();
  if (in_op) on_cpu.Add(*stream, does);
  if (DeviceCount() > 1) CheckPeers(what, stream->device);
  OrderLock lock(Order().mutex);
  const Past past = NoteWorkLocked(*stream, what, found.data(), found.size(), first ? &kernel : nullptr);
  RunLocked(lock, past);
  return CUDA_SUCCESS;
}

void BeginOp(const char* name, const WeirEmulatedAccess* accesses, size_t count, const WeirEmulatedWork* work,
             int carried) {
  ChargeOp(stack.depth > 0 ? 1 : 0);
  ++ops_begun;
  if (stack.depth == stack.ops.size()) stack.ops.emplace_back();
  OpOnStack& op = stack.ops[stack.depth++];
  op.name = name;
  op.accesses.assign(accesses, accesses + count);
  op.unknown.clear();
  op.time = {};
  op.carried = static_cast<Carried>(carried);
  op.launched = op.computed = false;
  if (work != nullptr) op.time.work = *work;
  if (count > 1) {
    std::sort(op.accesses.begin(), op.accesses.end(),
              [](const WeirEmulatedAccess& a, const WeirEmulatedAccess& b) { return a.begin < b.begin; });
  }
  SetCurrentOp(name);
}

void EndOp(const WeirEmulatedAccess* results, size_t count, double moves) {
  if (stack.depth == 0) return;  // it began before this library looked
  OpOnStack& op = stack.ops[stack.depth - 1];
  for (size_t i = 0; i < count && !op.unknown.empty(); ++i) {
    for (const LaunchedPointer& pointer : op.unknown) {
      if (pointer.address < results[i].begin || pointer.address >= EndOf(results[i])) continue;
      const Access written = FromAbi(results[i]);
      if (pointer.node != nullptr) {
        AddToCapturedKernel(pointer.node, written);
      } else {
        NoteLateAccess(pointer.work, written);
      }
      break;
    }
  }
  for (size_t i = 0; i < count && op.launched && !op.computed; ++i) ForgetAccess(FromAbi(results[i]));
  if (op.time.open) op.time.work.bytes += moves * BytesOfNew(op, results, count);
  op.time.Finish();
  --stack.depth;
  SetCurrentOp(stack.depth == 0 ? "" : stack.ops[stack.depth - 1].name);
}

int AreKnown(const WeirEmulatedAccess* accesses, size_t count) {
  if (CapturesUnderWay()) return 0;  // what is computed now would not be when the graph runs
  for (size_t i = 0; i < count; ++i) {
    const WeirEmulatedAccess& access = accesses[i];
    if (access.rows > kMostRows && !IsKnown(access.begin, EndOf(access) - access.begin)) return 0;
    for (size_t row = 0; row < access.rows && access.rows <= kMostRows; ++row) {
      if (!IsKnown(access.begin + row * access.pitch, access.size)) return 0;
    }
  }
  return 1;
}

void OpComputed(const char* name, const WeirEmulatedAccess* accesses, size_t count) {
  if (stack.depth > 0 && std::strcmp(stack.ops[stack.depth - 1].name, name) == 0)
    stack.ops[stack.depth - 1].computed = true;
  for (size_t i = 0; i < count; ++i) {
    const WeirEmulatedAccess& access = accesses[i];
    if (access.use == WEIR_EMULATED_UNKNOWN || access.rows > kMostRows) continue;  // with gaps
    for (size_t row = 0; row < access.rows; ++row)
      RememberWritten(access.begin + row * access.pitch, access.size);
  }
}

void SettleStream(void* handle) {
  Stream* stream = FindStream(static_cast<CUstream>(handle), "operator");
  if (stream == nullptr) return;
  OrderLock lock(Order().mutex);
  const Past past = stream->past;
  RunLocked(lock, past);
}

Carried CarriedByOp() { return stack.depth == 0 ? Carried::kUnknown : stack.ops[stack.depth - 1].carried; }
uint64_t OpsBegun() { return ops_begun; }

bool InTensorOfOp(uintptr_t address) {
  found.clear();
  for (size_t depth = stack.depth; depth > 0; --depth) {
    if (FindIn(stack.ops[depth - 1], address)) return true;
  }
  return false;
}

GraphNode* NoteLaunch(Stream& stream, const char* what, const uintptr_t* pointers, size_t count) {
  found.clear();
  std::vector<LaunchedPointer>* unknown = stack.depth == 0 ? nullptr : &stack.ops[stack.depth - 1].unknown;
  const size_t known_before = unknown == nullptr ? 0 : unknown->size();
  for (size_t i = 0; i < count; ++i) {
    bool known = false;
    for (size_t depth = stack.depth; depth > 0 && !known; --depth) {
      known = FindIn(stack.ops[depth - 1], pointers[i]);
    }
    if (known) continue;
    found.push_back({pointers[i], 1, Use::kUnknown});
    if (unknown != nullptr) unknown->push_back({pointers[i], nullptr, {}});
  }
  const Launched launched = NoteLaunchOfOp(stream, what, found.data(), found.size());
  for (size_t i = known_before; unknown != nullptr && i < unknown->size(); ++i) {
    (*unknown)[i].node = launched.node;
    (*unknown)[i].work = launched.work;
  }
  return launched.node;
}

Launched NoteLaunchOfOp(Stream& stream, const char* what, const Access* accesses, size_t count) {
  OpTime* time = stack.depth == 0 ? nullptr : &stack.ops[stack.depth - 1].time;
  if (time != nullptr) {
    time->open = time->open || time->stream == nullptr;
    time->stream = &stream;
    time->node = nullptr;
  }
  const Demand kernel = KernelDemand(1);
  ChargeLaunch();
  Launched launched;
  if (!CaptureKernel(stream, what, accesses, count, 0, &launched.node)) {
    ForgetLaunched(accesses, count);
    launched.work = NoteWork(stream, what, accesses, count, &kernel);
  } else if (time != nullptr) {
    time->node = launched.node;
    time->open = time->open && launched.node != nullptr;
  }
  return launched;
}

GraphNode* NoteLibraryLaunch(Stream& stream, const char* what, const Access* accesses, size_t count,
                             const WeirEmulatedWork& work) {
  if (stack.depth > 0) {
    OpTime& time = stack.ops[stack.depth - 1].time;
    time.open = false;
    time.stream = &stream;
    time.node = nullptr;
  }
  const Demand kernel = KernelDemand(1, work);
  ChargeLaunch();
  GraphNode* node = nullptr;
  if (!CaptureKernel(stream, what, accesses, count, WorkTime(work), &node)) {
    ForgetLaunched(accesses, count);
    NoteWork(stream, what, accesses, count, &kernel);
  }
  return node;
}

void NoteBlindLaunch() {
  for (size_t depth = 0; depth < stack.depth; ++depth) {
    OpOnStack& op = stack.ops[depth];
    op.launched = true;
    for (const WeirEmulatedAccess& access : op.accesses) {
      if (access.use != WEIR_EMULATED_READ) ForgetAccess(FromAbi(access));
    }
  }
}

void FinishOps() {
  for (size_t depth = 0; depth < stack.depth; ++depth) stack.ops[depth].time.Finish();
  on_cpu.Finish();
}

}  // namespace weir::emulated
