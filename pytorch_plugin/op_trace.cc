#include "pytorch_plugin/op_trace.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/streams.h"
#include "pytorch_plugin/thread_state.h"
#include "pytorch_plugin/traced_tensors.h"
#include "trace/format.h"

namespace weir::plugin {
namespace {

using trace::OpKind;
using trace::Phase;

const WeirTrace* tracer = nullptr;  // set once, before the callback can run
at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;

// Of one operator, name and overload. Never freed.
struct TracedOp {
  std::string name;  // without overload, to tell it again
  uint32_t number = 0;
  std::vector<bool> written;  // per argument, by the schema
  bool copies = false;        // it may bring bytes from CPU memory
};

TracedOp Describe(const c10::OperatorName& name) {
  TracedOp op;
  op.name = name.name;
  op.number = tracer->name(c10::toString(name).c_str());
  op.copies = name.name == "aten::copy_" || name.name == "aten::_to_copy";
  if (const auto handle = c10::Dispatcher::singleton().findSchema(name)) {
    for (const c10::Argument& argument : handle->schema().arguments()) {
      op.written.push_back(argument.alias_info() != nullptr && argument.alias_info()->isWrite());
    }
  }
  return op;
}

const TracedOp* Intern(const c10::OperatorName& name) {
  static std::mutex mutex;
  static auto* ops = new std::unordered_map<c10::OperatorName, std::unique_ptr<TracedOp>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<TracedOp>& op = (*ops)[name];
  if (op == nullptr) op = std::make_unique<TracedOp>(Describe(name));
  return op.get();
}

// As in op_guard.cc: a schema's strings stay where they are, so their addresses name the operator; the text guards
// against another string at the same place.
struct CacheSlot {
  const char* name = nullptr;
  const char* overload = nullptr;
  const TracedOp* op = nullptr;
};
thread_local std::array<CacheSlot, 512> cache;

// Null for an event that is no operator.
const TracedOp* Lookup(const at::RecordFunction& event) {
  const char *name = event.name(), *overload = event.overload_name();
  CacheSlot& slot = cache[(reinterpret_cast<uintptr_t>(name) >> 4) % cache.size()];
  if (slot.name == name && slot.overload == overload && std::strcmp(slot.op->name.c_str(), name) == 0) {
    return slot.op;
  }
  const std::optional<c10::OperatorName> operator_name = event.operator_name();
  if (!operator_name) return nullptr;
  slot = {name, overload, Intern(*operator_name)};
  return slot.op;
}

// ---- phases: of the process, changed by whichever thread shows the next one

std::atomic<Phase> phase{Phase::kOutside};
std::atomic<int> open_ranges{0};  // backward nodes and optimizer steps that have begun and not ended

void EnterPhase(Phase next) {
  if (phase.load(std::memory_order_relaxed) != next && phase.exchange(next) != next) {
    tracer->phase(static_cast<uint32_t>(next));
  }
}

// What an event that is no operator is the sign of; kOutside: of nothing.
Phase PhaseOf(std::string_view name) {
  if (name.starts_with("autograd::engine::evaluate_function")) return Phase::kBackward;
  if (name.starts_with("Optimizer.step#") || name.starts_with("Optimizer.zero_grad#"))
    return Phase::kOptimizer;
  return Phase::kOutside;
}

// ---- events

struct OpenEvent {
  const void* key;
  uint32_t number;
  bool is_range;  // counted in open_ranges
};

struct TraceState {
  std::vector<OpenEvent> open;
  std::vector<WeirTraceTensor> tensors;
};

TraceState& State() {
  // Never freed: ops run in thread-local destructors too.
  static thread_local auto* state = new TraceState;
  return *state;
}

void BeginOperator(TraceState& state, const at::RecordFunction& event, const TracedOp& op) {
  if (open_ranges.load(std::memory_order_relaxed) == 0) EnterPhase(Phase::kOutside);
  const c10::ArrayRef<const c10::IValue> inputs = event.inputs();
  bool from_host = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool written = i < op.written.size() && op.written[i];
    from_host |= AddTensors(inputs[i], written ? trace::kWritten : 0, &state.tensors);
  }
  if (op.copies && from_host) {
    for (WeirTraceTensor& tensor : state.tensors) tensor.flags |= trace::kFromHost;
  }
  state.open.push_back({&event, op.number, false});
  tracer->op_begin(op.number, static_cast<uint32_t>(OpKind::kOperator), event.seqNr(), state.tensors.data(),
                   state.tensors.size());
}

void BeginOther(TraceState& state, const at::RecordFunction& event) {
  const char* name = event.name();
  const Phase shown = PhaseOf(name);
  if (shown != Phase::kOutside) {
    open_ranges.fetch_add(1, std::memory_order_relaxed);
    EnterPhase(shown);
  }
  const bool node = shown == Phase::kBackward || event.scope() == at::RecordScope::BACKWARD_FUNCTION;
  for (const c10::IValue& input : event.inputs()) AddTensors(input, 0, &state.tensors);
  const uint32_t number = tracer->name(name);
  state.open.push_back({&event, number, shown != Phase::kOutside});
  tracer->op_begin(number, static_cast<uint32_t>(node ? OpKind::kBackwardNode : OpKind::kUserRange),
                   event.seqNr(), state.tensors.data(), state.tensors.size());
}

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& event) {
  if (InForkedChild()) return nullptr;
  TraceState& state = State();
  state.tensors.clear();
  if (const TracedOp* op = Lookup(event)) {
    BeginOperator(state, event, *op);
  } else {
    BeginOther(state, event);
  }
  return nullptr;
}

void SumResults(const TraceState& state) {
  for (size_t i = 0; i < state.tensors.size(); ++i) {
    const WeirTraceTensor& result = state.tensors[i];
    if (result.data != nullptr) tracer->sum(&result, static_cast<uint32_t>(i), CurrentStream(result.device));
  }
}

void OnEnd(const at::RecordFunction& event, at::ObserverContext*) {
  if (InForkedChild()) return;
  TraceState& state = State();
  // Events of a thread nest; one that began on another thread, or before the trace, is not here.
  size_t depth = state.open.size();
  while (depth > 0 && state.open[depth - 1].key != &event) --depth;
  if (depth == 0) return;
  const OpenEvent open = state.open[depth - 1];
  state.open.resize(depth - 1);
  state.tensors.clear();
  for (const c10::IValue& output : event.outputs()) AddTensors(output, 0, &state.tensors);
  tracer->op_end(open.number, state.tensors.data(), state.tensors.size());
  if (tracer->sums != 0) SumResults(state);
  if (open.is_range) open_ranges.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

void RegisterOpTrace() {
  tracer = weir_trace();
  if (tracer == nullptr) return;
  callback = at::addGlobalCallback(at::RecordFunctionCallback(&OnStart, &OnEnd)
                                       .needsInputs(true)
                                       .needsOutputs(true)
                                       .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                                                at::RecordScope::USER_SCOPE}));
  at::disableCallback(callback);
}

void EnableOpTrace() {
  if (tracer != nullptr) at::reenableCallback(callback);
}

}  // namespace weir::plugin
