// Watches every aten call of the process: whose materialize hook fires, and what it allocates.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/record_function.h>
#include <c10/core/StorageImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "tools/op_table/measured.h"
#include "tools/op_table/probe.h"
#include "tools/op_table/storages.h"
#include "tools/op_table/write_watch.h"

namespace weir::op_table {
namespace {

using c10::StorageImpl;
using c10::cuda::CUDACachingAllocator::TraceEntry;

struct Allocation {
  enum Kind { kMade, kGivenBack, kNone } kind;
  uintptr_t address;
  uint64_t bytes;
};

struct GivenStorage {
  int argument;
  std::string part;
  StorageImpl* storage;
  bool watched;  // else the call says nothing of writes to it
};

// One call in progress.
struct Frame {
  const at::RecordFunction* event = nullptr;
  c10::OperatorName op{"", ""};
  std::vector<c10::IValue> inputs;  // a reference to each: the op may drop the last one
  std::vector<GivenStorage> given;
  std::vector<StorageImpl*> watched;  // by this frame
  std::set<std::string> layouts;
  bool empty = false;                  // some tensor has no element: there may be nothing to do
  size_t allocations = 0, writes = 0;  // where the logs stood
  int exceptions = 0;
};

// Of each operator and source, for each set of arguments that have memory, and each set of layouts.
constexpr int kCallsKept = 2;

thread_local std::vector<Frame> frames;
thread_local std::vector<Allocation> allocation_log;
thread_local int unmeasured = 0;

// It makes its argument copy-on-write itself, and asserts that no hook is in its way.
bool MayWatch(const c10::OperatorName& op) { return op.name != "aten::_lazy_clone"; }

void NoteAllocation(const TraceEntry& entry) {
  if (frames.empty() || unmeasured != 0) return;
  const auto address = static_cast<uintptr_t>(entry.addr_);
  if (entry.action_ == TraceEntry::ALLOC)
    allocation_log.push_back(Allocation{Allocation::kMade, address, entry.size_});
  if (entry.action_ == TraceEntry::FREE_REQUESTED) {
    allocation_log.push_back(Allocation{Allocation::kGivenBack, address, 0});
  }
}

// The last block at `address`, which watching has caused, is no allocation of the op.
void ForgetAllocation(uintptr_t address) {
  for (const auto kind : {Allocation::kGivenBack, Allocation::kMade}) {
    const auto last =
        std::find_if(allocation_log.rbegin(), allocation_log.rend(),
                     [=](const Allocation& entry) { return entry.kind == kind && entry.address == address; });
    if (last != allocation_log.rend()) last->kind = Allocation::kNone;
  }
}

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& event) {
  if (unmeasured != 0) return nullptr;
  std::optional<c10::OperatorName> op = event.operator_name();
  if (!op || op->name.rfind("aten::", 0) != 0) return nullptr;
  Settle(&ForgetAllocation);
  if (frames.empty()) {
    SetCurrentOp(FullName(*op));
    at::cuda::clearCublasWorkspaces();  // every op shows whether it makes one
  }
  frames.emplace_back();
  Frame& frame = frames.back();
  frame.event = &event;
  frame.op = *op;
  frame.inputs.assign(event.inputs().begin(), event.inputs().end());
  frame.allocations = allocation_log.size();
  frame.writes = WriteLog().size();
  frame.exceptions = std::uncaught_exceptions();
  for (size_t i = 0; i < frame.inputs.size(); ++i) {
    ForEachTensor(frame.inputs[i], [&frame](const at::Tensor& t) {
      frame.layouts.insert(LayoutOf(t));
      frame.empty = frame.empty || t.numel() == 0;
    });
    ForEachStorage(frame.inputs[i], [&frame, i](StorageImpl* storage, const char* part) {
      if (storage->nbytes() == 0 || storage->device_type() != at::kCUDA) return;
      if (MayWatch(frame.op) && Watch(storage)) frame.watched.push_back(storage);
      frame.given.push_back(GivenStorage{static_cast<int>(i), part, storage, IsWatched(storage)});
    });
  }
  return nullptr;
}

struct Temporaries {
  int count = 0, kept = 0;
  uint64_t bytes = 0, kept_bytes = 0;
};

// What was allocated since `first` and is neither `owned` at the end nor belongs to an argument.
Temporaries CountTemporaries(size_t first, const std::unordered_set<uintptr_t>& owned) {
  std::unordered_map<uintptr_t, size_t> alive;  // address to its entry in the log
  for (size_t i = first; i < allocation_log.size(); ++i) {
    if (allocation_log[i].kind == Allocation::kMade) alive[allocation_log[i].address] = i;
    if (allocation_log[i].kind == Allocation::kGivenBack) alive.erase(allocation_log[i].address);
  }
  std::unordered_set<size_t> returned;
  Temporaries found;
  for (const auto& [address, entry] : alive) {
    if (owned.count(address) != 0) {
      returned.insert(entry);
    } else {
      ++found.kept;
      found.kept_bytes += allocation_log[entry].bytes;
    }
  }
  std::unordered_map<uintptr_t, uint64_t> now;
  uint64_t bytes = 0;
  for (size_t i = first; i < allocation_log.size(); ++i) {
    const Allocation& entry = allocation_log[i];
    if (entry.kind == Allocation::kGivenBack) {
      auto freed = now.find(entry.address);
      if (freed == now.end()) continue;
      bytes -= freed->second;
      now.erase(freed);
    } else if (entry.kind == Allocation::kMade && returned.count(i) == 0) {
      ++found.count;
      now[entry.address] = entry.bytes;
      bytes += entry.bytes;
      found.bytes = std::max(found.bytes, bytes);
    }
  }
  return found;
}

void AddOwned(const c10::IValue& value, std::unordered_set<uintptr_t>& owned, uint64_t& bytes) {
  ForEachStorage(value, [&](StorageImpl* storage, const char*) {
    const void* address = storage->_mutable_data_ptr_no_checks().get();
    if (owned.insert(reinterpret_cast<uintptr_t>(address)).second) bytes += storage->nbytes();
  });
}

void KeepCall(const Frame& frame) {
  std::string kind;
  for (const GivenStorage& given : frame.given) kind += std::to_string(given.argument) + " ";
  for (const std::string& layout : frame.layouts) kind += layout;
  std::vector<Call>& calls = CurrentCalls()[FullName(frame.op)];
  const auto same =
      std::count_if(calls.begin(), calls.end(), [&kind](const Call& c) { return c.kind == kind; });
  if (same >= kCallsKept) return;
  Unmeasured off;
  Call call{frame.op, kind, {}};
  try {
    for (const c10::IValue& value : frame.inputs)
      call.inputs.push_back(Copy(value, [](const at::Tensor&) {}));
    calls.push_back(std::move(call));
  } catch (const std::exception&) {  // a kind of tensor that cannot be copied
  }
}

// Storages that an argument is marked to be written by may be given as other arguments too: x.add_(x).
std::unordered_set<StorageImpl*> MarkedStorages(const Frame& frame, const c10::FunctionSchema& schema) {
  std::unordered_set<StorageImpl*> marked;
  for (const GivenStorage& given : frame.given) {
    const c10::AliasInfo* alias = schema.arguments()[static_cast<size_t>(given.argument)].alias_info();
    if (alias != nullptr && alias->isWrite()) marked.insert(given.storage);
  }
  return marked;
}

void AddWrites(const Frame& frame, Measured& row) {
  const auto handle = c10::Dispatcher::singleton().findSchema(frame.op);
  const c10::FunctionSchema& schema = handle->schema();
  const std::unordered_set<StorageImpl*> marked = MarkedStorages(frame, schema);
  const bool plain = frame.layouts == std::set<std::string>{"strided"};
  for (const GivenStorage& given : frame.given) {
    const c10::AliasInfo* alias = schema.arguments()[static_cast<size_t>(given.argument)].alias_info();
    const bool marks = alias != nullptr && alias->isWrite();
    if ((!marks && marked.count(given.storage) != 0) || !given.watched) continue;
    row.given.insert(given.argument);
    const auto since = WriteLog().begin() + static_cast<ptrdiff_t>(frame.writes);
    if (std::find(since, WriteLog().end(), given.storage) == WriteLog().end()) {
      const bool once =
          std::count_if(frame.given.begin(), frame.given.end(), [&given](const GivenStorage& g) {
            return g.storage == given.storage;
          }) == 1;  // x.copy_(x) does nothing
      if (plain && once && !frame.empty) row.silent.insert(given.argument);
      continue;
    }
    const std::string name = std::to_string(given.argument);
    row.fired.insert(given.part.empty() ? name : name + "." + given.part);
  }
}

void AddRun(const Frame& frame, const std::vector<c10::IValue>& outputs) {
  std::unordered_set<uintptr_t> owned;
  uint64_t bytes = 0;
  for (const c10::IValue& value : frame.inputs) AddOwned(value, owned, bytes);
  for (const c10::IValue& value : outputs) AddOwned(value, owned, bytes);
  if (owned.empty()) return;  // no CUDA memory in sight
  Measured& row = CurrentRows()[FullName(frame.op)];
  ++row.runs;
  row.layouts.insert(frame.layouts.begin(), frame.layouts.end());
  for (const c10::IValue& value : outputs) {
    ForEachTensor(value, [&row](const at::Tensor& t) { row.layouts.insert(LayoutOf(t)); });
  }
  AddWrites(frame, row);
  const Temporaries made = CountTemporaries(frame.allocations, owned);
  row.temporaries = std::max(row.temporaries, made.count);
  row.temporary_bytes = std::max(row.temporary_bytes, made.bytes);
  row.kept = std::max(row.kept, made.kept);
  row.kept_bytes = std::max(row.kept_bytes, made.kept_bytes);
  if (bytes != 0)
    row.share = std::max(row.share, static_cast<double>(made.bytes) / static_cast<double>(bytes));
  KeepCall(frame);
}

void OnEnd(const at::RecordFunction& event, at::ObserverContext*) {
  if (frames.empty() || frames.back().event != &event) return;
  Frame frame = std::move(frames.back());
  const bool returned = std::uncaught_exceptions() == frame.exceptions;
  Settle(&ForgetAllocation);
  for (StorageImpl* storage : frame.watched) Unwatch(storage);
  if (returned) AddRun(frame, event.outputs());
  frames.pop_back();
  if (!frames.empty()) return;
  allocation_log.clear();
  WriteLog().clear();
}

}  // namespace

Unmeasured::Unmeasured() { ++unmeasured; }
Unmeasured::~Unmeasured() { --unmeasured; }

void StartObserving() {
  at::addGlobalCallback(at::RecordFunctionCallback(&OnStart, &OnEnd)
                            .needsInputs(true)
                            .needsOutputs(true)
                            .scopes({at::RecordScope::FUNCTION}));
  c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(&NoteAllocation);
}

}  // namespace weir::op_table
