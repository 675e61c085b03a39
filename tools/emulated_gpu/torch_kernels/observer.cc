#include "tools/emulated_gpu/torch_kernels/observer.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/emulated_gpu/torch_kernels/host.h"
#include "tools/emulated_gpu/torch_kernels/op_cost.h"
#include "tools/emulated_gpu/torch_kernels/tensor_bytes.h"

namespace weir::emulated {
namespace {

struct KnownOp {
  std::string name;           // lives as long as the process, as all of this
  std::vector<bool> written;  // per argument
  OpCost cost;
  int carries = -1;  // the argument whose values it copies between host and device, -1: none
};

// The two operators that copy between host and device by themselves: aten::copy_(self, src) and what `item()` calls.
int CarriedArgument(const std::string& name) {
  return name == "aten::copy_" ? 1 : name == "aten::_local_scalar_dense" ? 0 : -1;
}

int CarriedBy(const KnownOp& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (op.carries < 0 || inputs.size() <= static_cast<size_t>(op.carries))
    return WEIR_EMULATED_CARRIES_UNKNOWN;
  const c10::IValue& value = inputs[static_cast<size_t>(op.carries)];
  if (!value.isTensor() || !value.toTensor().defined()) return WEIR_EMULATED_CARRIES_UNKNOWN;
  const at::ScalarType type = value.toTensor().scalar_type();
  return at::isIntegralType(type, /*includeBool=*/true) ? WEIR_EMULATED_CARRIES_INTEGERS
                                                        : WEIR_EMULATED_CARRIES_FLOATS;
}

// Null for events that are no operator.
const KnownOp* Describe(const at::RecordFunction& event) {
  static std::mutex mutex;
  static auto* known = new std::unordered_map<std::string, std::unique_ptr<KnownOp>>;
  const std::optional<c10::OperatorName> name = event.operator_name();
  if (!name) return nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<KnownOp>& op = (*known)[toString(*name)];
  if (op != nullptr) return op.get();
  op = std::make_unique<KnownOp>(KnownOp{toString(*name), {}, {}, CarriedArgument(toString(*name))});
  if (const auto handle = c10::Dispatcher::singleton().findSchema(*name)) {
    for (const c10::Argument& argument : handle->schema().arguments())
      op->written.push_back(IsWritten(argument));
    op->cost = OpCost(handle->schema());
  }
  return op.get();
}

// A schema's strings stay where they are, so their addresses name an operator; the text guards against reuse.
struct CacheSlot {
  const char* name = nullptr;
  const char* overload = nullptr;
  const KnownOp* op = nullptr;
};
thread_local std::array<CacheSlot, 4096> cache;

const KnownOp* Lookup(const at::RecordFunction& event) {
  const char *name = event.name(), *overload = event.overload_name();
  CacheSlot& slot = cache[(reinterpret_cast<uintptr_t>(overload) >> 4) % cache.size()];
  const bool same = slot.name == name && slot.overload == overload && slot.op != nullptr &&
                    std::strncmp(slot.op->name.c_str(), name, std::strlen(name)) == 0;
  if (!same) slot = {name, overload, Describe(event)};
  return slot.op;
}

// A child has no device, and the locks of threads that it does not have stay held in it.
std::atomic<bool> in_forked_child{false};
bool InForkedChild() { return in_forked_child.load(std::memory_order_relaxed); }
void WatchForks() {
  static const int watched = pthread_atfork(nullptr, nullptr, [] { in_forked_child.store(true); });
  TORCH_CHECK(watched == 0, "the emulated GPU cannot watch forks");
}

thread_local Accesses accesses;
thread_local std::vector<const KnownOp*> open_ops;  // that began and have not ended; null: no operator

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& event) {
  if (InForkedChild()) return nullptr;
  const KnownOp* op = Lookup(event);
  open_ops.push_back(op);
  accesses.clear();
  if (op == nullptr) {
    Host().begin_op("", nullptr, 0, nullptr, WEIR_EMULATED_CARRIES_UNKNOWN);
    return nullptr;
  }
  WeirEmulatedWork work{};
  const c10::ArrayRef<const c10::IValue> inputs = event.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t before = accesses.size();
    AddBytes(inputs[i], i < op->written.size() && op->written[i], accesses);
    work.bytes += op->cost.BytesOf(i, accesses.data() + before, accesses.data() + accesses.size());
  }
  op->cost.AddOperations(inputs, &work);
  Host().begin_op(op->name.c_str(), accesses.data(), accesses.size(), &work, CarriedBy(*op, inputs));
  return nullptr;
}

void OnEnd(const at::RecordFunction& event, at::ObserverContext*) {
  if (InForkedChild()) return;
  accesses.clear();
  for (const c10::IValue& result : event.outputs()) AddBytes(result, true, accesses);
  const KnownOp* op = nullptr;
  if (!open_ops.empty()) {  // it is empty when the op began before this looked
    op = open_ops.back();
    open_ops.pop_back();
  }
  Host().end_op(accesses.data(), accesses.size(), op == nullptr ? 1 : op->cost.MovesOfResults());
}

thread_local int depth = 0;
std::unique_ptr<at::ObserverContext> OnHostStart(const at::RecordFunction&) {
  if (!InForkedChild()) Host().host_op(depth > 0 ? 1 : 0);
  ++depth;
  return nullptr;
}
void OnHostEnd(const at::RecordFunction&, at::ObserverContext*) { --depth; }

// Torch names the range of an optimizer's step "Optimizer.step#AdamW.step"; a program may name one "step".
void OnRangeEnd(const at::RecordFunction& event, at::ObserverContext*) {
  constexpr const char kOptimizer[] = "Optimizer.step#";
  const char* name = event.name();
  if (std::strncmp(name, kOptimizer, sizeof kOptimizer - 1) == 0 || std::strcmp(name, "step") == 0) {
    if (!InForkedChild()) Host().end_step(name);
  }
}
std::unique_ptr<at::ObserverContext> OnRangeStart(const at::RecordFunction&) { return nullptr; }

}  // namespace

void ObserveOps() {
  WatchForks();
  at::addGlobalCallback(at::RecordFunctionCallback(&OnStart, &OnEnd)
                            .needsInputs(true)
                            .needsOutputs(true)
                            .scopes({at::RecordScope::FUNCTION}));
}

void ObserveHostTime() {
  WatchForks();
  at::addGlobalCallback(
      at::RecordFunctionCallback(&OnHostStart, &OnHostEnd).scopes({at::RecordScope::FUNCTION}));
}

void ObserveSteps() {
  WatchForks();
  at::addGlobalCallback(
      at::RecordFunctionCallback(&OnRangeStart, &OnRangeEnd).scopes({at::RecordScope::USER_SCOPE}));
}

}  // namespace weir::emulated
