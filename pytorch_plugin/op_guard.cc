#include "pytorch_plugin/op_guard.h"

#include <ATen/record_function.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/base/safeguards.h"
#include "pytorch_plugin/allocator_adapter.h"
#include "pytorch_plugin/composite_ops.h"
#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/foreign_code.h"
#include "pytorch_plugin/list_ops.h"
#include "pytorch_plugin/observer_switch.h"
#include "pytorch_plugin/op_writes.h"
#include "pytorch_plugin/safe_points.h"
#include "pytorch_plugin/storage_flags.h"
#include "pytorch_plugin/streams.h"
#include "pytorch_plugin/thread_state.h"
#include "pytorch_plugin/torch_version.h"
#include "pytorch_plugin/touches.h"

namespace weir::plugin {
namespace {

// What the observer knows of one operator (name and overload). Never freed.
struct OpInfo {
  std::string name;
  std::vector<Write> writes;  // per argument
  std::vector<bool> made;     // per result: a new tensor that counts as seen; empty if there is none
  bool container = false;
  bool view = false;
  bool keeps = false;  // its arguments are pinned for good: collectives, and what R3 says of this minor
  const ListOp* list = nullptr;
};

at::CallbackHandle observer = at::INVALID_CALLBACK_HANDLE;
std::atomic<bool> observing{false};

// Which results are new tensors (masks and workspaces that are saved for backward are no op's argument until then).
std::vector<bool> MadeBy(const c10::FunctionSchema& schema) {
  std::vector<bool> made;
  bool any = false;
  if (!ResultsCountAsSeen(schema.name()) && !Without(Safeguard::kFactoryIsNoEvidence)) return made;
  for (const c10::Argument& result : schema.returns()) {
    made.push_back(result.alias_info() == nullptr);
    any = any || made.back();
  }
  if (!any) made.clear();
  return made;
}

std::unique_ptr<OpInfo> Describe(const c10::OperatorName& op) {
  auto info = std::make_unique<OpInfo>();
  info->name = op.name;
  info->view = IsViewOp(op.name);
  info->keeps = IsCollectiveOp(op.name) && !Without(Safeguard::kCollectivesStay);
  if (kOnlyKnownConsumers) {
    info->keeps = info->keeps || !IsKnownConsumer(op.name);
    NoteOperator(op.name);
  }
  info->list = FindListOp(op);
  std::optional<c10::OperatorHandle> handle = c10::Dispatcher::singleton().findSchema(op);
  if (!handle) return info;
  // Some overloads of a composite name have a CUDA kernel of their own: std.correction, upsample_nearest2d.
  const bool has_kernel = handle->hasKernelForDispatchKey(c10::DispatchKey::CUDA);
  info->container = IsContainerOp(op.name) && (!has_kernel || Without(Safeguard::kOverloadWithKernelTouches));
  info->writes = WritesOf(handle->schema());
  info->made = MadeBy(handle->schema());
  return info;
}

// One per operator for the life of the process; taken once per thread and operator.
const OpInfo* Intern(const c10::OperatorName& op) {
  static std::mutex mutex;
  static auto* infos = new std::unordered_map<std::string, std::unique_ptr<OpInfo>>;
  const std::string key = op.name + "." + op.overload_name;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<OpInfo>& info = (*infos)[key];
  if (info == nullptr) info = Describe(op);
  return info.get();
}

// A schema's strings stay where they are, so their addresses name the operator without a copy. Events that
// are no operator carry a string of their own, which is never cached.
struct CacheSlot {
  const char* name = nullptr;
  const char* overload = nullptr;
  const OpInfo* info = nullptr;
};
constexpr size_t kCacheSlots = 512;  // a GPT step uses about 90 operators
thread_local std::array<CacheSlot, kCacheSlots> cache;

const OpInfo* Lookup(const at::RecordFunction& event) {
  const char* name = event.name();
  const char* overload = event.overload_name();
  CacheSlot& slot = cache[(reinterpret_cast<uintptr_t>(name) >> 4) % kCacheSlots];
  if (slot.name == name && slot.overload == overload && std::strcmp(slot.info->name.c_str(), name) == 0) {
    return slot.info;
  }
  std::optional<c10::OperatorName> op = event.operator_name();
  if (!op) return nullptr;
  slot = CacheSlot{name, overload, Intern(*op)};
  return slot.info;
}

// Everything that runs user code, or only calls other ops, holds nothing itself.
bool IsContainer(const OpInfo* info) {
  return info == nullptr || info->container || c10::impl::TorchDispatchModeTLS::any_modes_set();
}

void PinForGood(ThreadState& thread) {
  WeirError error;
  for (size_t i = 0; i < thread.touches.size(); ++i) {
    weir_pin_escaped(thread.touches[i].address, CurrentStream(thread.devices[i]), &error);
  }
}

void Touch(ThreadState& thread, const OpInfo& info) {
  if (Without(Safeguard::kArgumentsBroughtBack)) return static_cast<void>(TouchCollectedIfResident(thread));
  WeirError error;
  if (Without(Safeguard::kPinsUntilOpEnds)) weir_chunk_begin();
  const bool here = TouchCollected(thread, &error);
  if (Without(Safeguard::kPinsUntilOpEnds)) weir_chunk_end();
  if (!here) {
    ArmPendingOom(thread, error.text);
  } else if (info.keeps) {
    PinForGood(thread);
  }
}

// A view needs no byte, but what it was given has been seen: it may leave. What is not resident has left
// already.
void NoteSeen(ThreadState& thread, const OpInfo& info) {
  if (thread.touches.empty()) return;
  weir_op_enter(info.name.c_str());
  TouchCollectedIfResident(thread);
  weir_op_leave();
}

bool CollectArguments(ThreadState& thread, const at::RecordFunction& event, const OpInfo& info) {
  const c10::ArrayRef<const c10::IValue> inputs = event.inputs();
  const bool evidence = IsOutermost(thread) || Without(Safeguard::kNestedIsNoEvidence);
  ClearTouches(thread);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Write write = i < info.writes.size() ? info.writes[i] : Write::kMaybe;
    if (!CollectTouches(thread, inputs[i], write, evidence)) return false;
  }
  return true;
}

// The operator if it is one that holds its tensors; they are collected then.
const OpInfo* HoldingOp(ThreadState& thread, const at::RecordFunction& event) {
  if (event.scope() != at::RecordScope::FUNCTION) return nullptr;
  const OpInfo* info = Lookup(event);
  if (IsContainer(info)) return nullptr;
  if (info->list != nullptr &&
      (ReachesOurKernel(*info->list) || Without(Safeguard::kForeignKernelOfListTouched))) {
    return nullptr;  // R7: it touches chunk by chunk
  }
  if (info->view && !thread.open.empty()) return nullptr;
  return CollectArguments(thread, event, *info) ? info : nullptr;
}

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& event) {
  if (InForkedChild()) return nullptr;
  ThreadState& thread = Thread();
  if (thread.blind) {
    thread.blind = false;
    weir_blind_thread(0);
  }
  if (C10_UNLIKELY(!SafePointsPassed())) LookNowAndThen();
  const OpInfo* info = HoldingOp(thread, event);
  if (info == nullptr) {
    weir_count_event();
    return nullptr;
  }
  weir_count_op();
  if (info->view) {
    NoteSeen(thread, *info);
    return nullptr;
  }
  OpenOp(&event, info->name.c_str());
  if (thread.touches.empty()) return nullptr;
  NoteReplacement();
  Touch(thread, *info);
  return nullptr;
}

// The new tensors of an outermost op are seen at its end, and may leave afterwards.
void NoteResults(ThreadState& thread, const at::RecordFunction& event) {
  const OpInfo* info = Lookup(event);
  if (info == nullptr || info->made.empty()) return;
  const std::vector<c10::IValue>& results = event.outputs();
  ClearTouches(thread);
  for (size_t i = 0; i < results.size() && i < info->made.size(); ++i) {
    if (info->made[i]) CollectTouches(thread, results[i], Write::kMaybe, true);
  }
  if (!thread.touches.empty()) TouchCollectedIfResident(thread);
}

void OnEnd(const at::RecordFunction& event, at::ObserverContext*) {
  if (InForkedChild()) return;
  ThreadState& thread = Thread();
  const bool outermost = thread.open.size() == 1 && thread.open.back() == &event;
  if (outermost && SafePointsPassed()) NoteResults(thread, event);
  CloseOp(&event);
  if (outermost) EndWatchIfQuiet();
}

}  // namespace

void RegisterObserver() {
  observer = at::addGlobalCallback(at::RecordFunctionCallback(&OnStart, &OnEnd)
                                       .needsInputs(true)
                                       .needsOutputs(true)
                                       .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                                                at::RecordScope::USER_SCOPE}));
  at::disableCallback(observer);
}

void EnableObserver() {
  observing.store(true);
  at::reenableCallback(observer);
}

void DisableObserver() {
  observing.store(false);
  if (observer != at::INVALID_CALLBACK_HANDLE) at::disableCallback(observer);
}

bool IsOutermost(const ThreadState& thread) { return thread.open.empty() && SafePointsPassed(); }

bool Observing() { return observing.load(std::memory_order_relaxed); }

void NoteUnobservedAllocation() {
  if (!Observing()) return;
  ThreadState& thread = Thread();
  if (!thread.open.empty() || thread.blind) return;
  if (at::isRecordFunctionEnabled() && at::hasGlobalCallbacks()) return;
  if (Without(Safeguard::kBlindThreadStopsEviction)) return;
  thread.blind = true;
  weir_blind_thread(1);
}

void OpenOp(const void* key, const char* name) {
  weir_op_enter(name);
  Thread().open.push_back(key);
}

void CloseOp(const void* key) {
  ThreadState& thread = Thread();
  if (thread.open.empty() || thread.open.back() != key) return;  // a container, or opened before the switch
  if (!thread.oom.empty() && thread.open.size() == thread.oom_depth) DisarmPendingOom(thread);
  thread.open.pop_back();
  weir_op_leave();
}

void ThrowIfOomPending() {
  if (PendingOoms() == 0) return;
  const std::string& text = Thread().oom;
  TORCH_CHECK_WITH(OutOfMemoryError, text.empty(), text);
}

}  // namespace weir::plugin
