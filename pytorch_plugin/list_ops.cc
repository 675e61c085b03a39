#include "pytorch_plugin/list_ops.h"

#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/base/safeguards.h"
#include "pytorch_plugin/composite_ops.h"
#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/list_route.h"
#include "pytorch_plugin/op_guard.h"
#include "pytorch_plugin/thread_state.h"
#include "pytorch_plugin/torch_version_lists.h"
#include "pytorch_plugin/touches.h"

namespace weir::plugin {

struct ListOp {
  c10::OperatorHandle handle;
  std::string name;                             // qualified, without overload
  std::vector<std::string> arguments;           // names
  c10::SafeKernelFunction original;             // at the CUDA key before us
  std::optional<c10::SafeKernelFunction> slow;  // the composite kernel, for _foreach_ ops
  std::optional<c10::KernelFunction> ours;
  bool makes_tensors = false;  // returns tensors as large as its inputs
  bool couples = false;        // positions are not independent
};

namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using torch::jit::Stack;

std::unordered_map<c10::OperatorName, std::unique_ptr<ListOp>>& Table() {
  static auto* table = new std::unordered_map<c10::OperatorName, std::unique_ptr<ListOp>>;
  return *table;
}

bool Is(const ListOp& op, const char* name) { return op.name == name; }

class OpScope {
 public:
  explicit OpScope(const ListOp& op) {
    weir_count_op();
    OpenOp(this, op.name.c_str());
  }
  ~OpScope() { CloseOp(this); }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;
};

class ChunkScope {
 public:
  ChunkScope() { weir_chunk_begin(); }
  ~ChunkScope() { weir_chunk_end(); }
  ChunkScope(const ChunkScope&) = delete;
  ChunkScope& operator=(const ChunkScope&) = delete;
};

// Every list counts as written: multi-tensor kernels write through const pointers (R2).
void Collect(ThreadState& thread, c10::ArrayRef<c10::IValue> values, bool evidence) {
  ClearTouches(thread);
  const Write write = Without(Safeguard::kListOpWritesAll) ? Write::kNever : Write::kMaybe;
  for (const c10::IValue& value : values) CollectTouches(thread, value, write, evidence);
}

void TouchOrThrow(ThreadState& thread) {
  WeirError error;
  std::optional<ChunkScope> unpinned;
  if (Without(Safeguard::kPinsUntilPieceEnds)) unpinned.emplace();
  if (thread.touches.empty() || TouchCollected(thread, &error)) return;
  ClearTouches(thread);
  TORCH_CHECK_WITH(OutOfMemoryError, false, error.text);
}

c10::ArrayRef<c10::IValue> Arguments(const ListOp& op, const Stack& stack) {
  const size_t count = op.arguments.size();
  return c10::ArrayRef<c10::IValue>(stack).slice(stack.size() - count, count);
}

int DeviceOf(const ThreadState& thread) { return thread.devices.empty() ? 0 : thread.devices[0]; }

// One call, cut into pieces.
class ChunkedCall {
 public:
  ChunkedCall(const ListOp& op, DispatchKeySet keys, Stack* stack, ListArguments arguments, bool evidence)
      : op_(op), keys_(keys), arguments_(std::move(arguments)), evidence_(evidence) {
    const size_t count = op.arguments.size();
    values_.assign(stack->end() - static_cast<ptrdiff_t>(count), stack->end());
  }

  // First position after the piece that starts at `first`; a piece has one position at least.
  size_t EndOfPiece(size_t first, uint64_t budget) const {
    uint64_t bytes = 0;
    size_t last = first;
    while (last < arguments_.length) {
      bytes += BytesOf(last);
      if (last > first && bytes > budget) break;
      ++last;
    }
    return last;
  }

  void Run(const c10::SafeKernelFunction& kernel, size_t first, size_t last) {
    ChunkScope chunk;
    ThreadState& thread = Thread();
    Stack piece = Piece(first, last);
    Collect(thread, piece, evidence_);
    if (!Without(Safeguard::kPieceTouched)) TouchOrThrow(thread);
    kernel.callBoxed(op_.handle, keys_, &piece);
    KeepOutputs(thread, piece);
  }

  std::vector<std::vector<at::Tensor>> TakeOutputs() { return std::move(outputs_); }

 private:
  uint64_t BytesOf(size_t index) const {
    const uint64_t bytes = BytesAt(arguments_, index);
    return op_.makes_tensors ? bytes + arguments_.lists[0][index].nbytes() : bytes;
  }

  Stack Piece(size_t first, size_t last) const {
    Stack piece = values_;
    for (size_t number : arguments_.sliced) piece[number] = Slice(values_[number], first, last);
    return piece;
  }

  // Outputs may leave while later pieces run: they are seen as evidence here, for no later op takes them all.
  void KeepOutputs(ThreadState& thread, const Stack& results) {
    outputs_.resize(results.size());
    ClearTouches(thread);
    for (size_t r = 0; r < results.size(); ++r) {
      for (const c10::IValue& element : results[r].toListRef()) {
        outputs_[r].push_back(element.toTensor());
        CollectTouches(thread, element, Write::kMaybe, evidence_);
      }
    }
    if (!thread.touches.empty()) TouchOrThrow(thread);
  }

  const ListOp& op_;
  const DispatchKeySet keys_;
  const ListArguments arguments_;
  const bool evidence_;
  Stack values_;
  std::vector<std::vector<at::Tensor>> outputs_;
};

void RunWhole(const ListOp& op, DispatchKeySet keys, Stack* stack, bool evidence) {
  ThreadState& thread = Thread();
  Collect(thread, Arguments(op, *stack), evidence);
  if (!Without(Safeguard::kWholeListTouched)) TouchOrThrow(thread);
  op.original.callBoxed(op.handle, keys, stack);
}

void RunChunked(const ListOp& op, DispatchKeySet keys, Stack* stack, ListArguments arguments, Route route,
                uint64_t budget, bool evidence) {
  const size_t length = arguments.length;
  ChunkedCall call(op, keys, stack, std::move(arguments), evidence);
  if (call.EndOfPiece(0, budget) == length) return RunWhole(op, keys, stack, evidence);
  const c10::SafeKernelFunction& kernel = route == Route::kSlow ? *op.slow : op.original;
  for (size_t first = 0; first < length;) {
    const size_t last = call.EndOfPiece(first, budget);
    call.Run(kernel, first, last);
    first = last;
  }
  torch::jit::drop(*stack, op.arguments.size());
  for (std::vector<at::Tensor>& list : call.TakeOutputs()) stack->emplace_back(c10::List<at::Tensor>(list));
}

// True if one unchunked call is right: everything is here, and what the op makes fits in one piece.
bool IsHereAlready(const ListOp& op, ThreadState& thread, const ListArguments& arguments, uint64_t budget) {
  if (op.makes_tensors && !arguments.lists.empty()) {
    uint64_t made = 0;
    for (const at::Tensor& t : arguments.lists[0]) made += t.nbytes();
    if (made > budget) return false;
  }
  std::optional<ChunkScope> unpinned;
  if (Without(Safeguard::kResidentListPinned)) unpinned.emplace();
  return thread.touches.empty() || TouchCollectedIfResident(thread);
}

void RunListOp(const c10::OperatorHandle& handle, DispatchKeySet keys, Stack* stack) {
  const ListOp& op = *FindListOp(handle.operator_name());
  if (!Observing() || InForkedChild()) return op.original.callBoxed(op.handle, keys, stack);
  ThreadState& thread = Thread();
  const bool evidence = IsOutermost(thread);
  OpScope scope(op);
  c10::ArrayRef<c10::IValue> values = Arguments(op, *stack);
  ListArguments arguments = ParseListArguments(values, op.arguments);
  Collect(thread, values, evidence);
  const uint64_t budget = weir_chunk_bytes(DeviceOf(thread));
  if (IsHereAlready(op, thread, arguments, budget)) return op.original.callBoxed(op.handle, keys, stack);
  const Route route = op.couples
                          ? Route::kWhole
                          : DecideRoute(arguments, op.slow.has_value(), Is(op, "aten::_foreach_copy_"));
  if (route == Route::kWhole) return RunWhole(op, keys, stack, evidence);
  RunChunked(op, keys, stack, std::move(arguments), route, budget, evidence);
}

// A list op that we take: in place or functional (no out= variant), at least one list of tensors, a CUDA
// kernel.
bool Wanted(const c10::OperatorHandle& handle) {
  const c10::OperatorName& op = handle.operator_name();
  if (!HasListOpName(op.name) || op.overload_name.find("out") != std::string::npos) return false;
  if (!handle.hasSchema() || !handle.hasKernelForDispatchKey(DispatchKey::CUDA)) return false;
  const auto& arguments = handle.schema().arguments();
  return std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) {
    return *argument.type() == *c10::ListType::ofTensors();
  });
}

std::unique_ptr<ListOp> Describe(const c10::OperatorHandle& handle) {
  const c10::FunctionSchema& schema = handle.schema();
  auto op = std::make_unique<ListOp>(ListOp{handle,
                                            schema.name(),
                                            {},
                                            handle.getComputedKernelForDispatchKey(DispatchKey::CUDA),
                                            {},
                                            {},
                                            false,
                                            false});
  for (const c10::Argument& argument : schema.arguments()) op->arguments.push_back(argument.name());
  if (op->name.starts_with("aten::_foreach_") && !handle.hasKernelForDispatchKey(DispatchKey::CPU)) {
    op->slow = handle.getComputedKernelForDispatchKey(DispatchKey::CPU);  // the composite one, for any device
  }
  op->couples = Is(*op, "aten::_foreach_mm");  // one grouped multiplication
  const bool reduces =
      Is(*op, "aten::_foreach_norm") || Is(*op, "aten::_foreach_max") || Is(*op, "aten::_foreach_powsum");
  op->makes_tensors = !schema.returns().empty() && !reduces;
  return op;
}

// Takes the warning that a kernel is overridden, which is what we are here for.
struct SilentWarnings : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

}  // namespace

int RegisterListOps() {
  SilentWarnings silent;
  c10::WarningUtils::WarningHandlerGuard guard(&silent);
  auto* library = new torch::Library(torch::Library::IMPL, "aten", DispatchKey::CUDA, __FILE__, __LINE__);
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    std::optional<c10::OperatorHandle> handle = dispatcher.findOp(name);
    if (!handle || !Wanted(*handle)) continue;
    ListOp& op = *(Table()[name] = Describe(*handle));
    const std::string full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    library->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&RunListOp>());
    op.ours = KernelFor(*handle, DispatchKeySet(DispatchKey::CUDA));
  }
  return static_cast<int>(Table().size());
}

const ListOp* FindListOp(const c10::OperatorName& op) {
  auto found = Table().find(op);
  return found == Table().end() ? nullptr : found->second.get();
}

bool ReachesOurKernel(const ListOp& op) {
  return KernelFor(op.handle, DispatchKeySet(DispatchKey::CUDA))._equalsBoxedAndUnboxed(*op.ours);
}

}  // namespace weir::plugin
