#include "tools/emulated_gpu/device/op_work.h"

#include <algorithm>
#include <vector>

#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/streams.h"
#include "tools/emulated_gpu/device/work_queue.h"

namespace weir::emulated {
namespace {

static_assert(static_cast<int>(Use::kRead) == WEIR_EMULATED_READ &&
              static_cast<int>(Use::kWrite) == WEIR_EMULATED_WRITE &&
              static_cast<int>(Use::kUnknown) == WEIR_EMULATED_UNKNOWN);

struct LaunchedPointer {
  Stream* stream;
  uintptr_t address;
};

struct OpOnStack {
  const char* name;
  std::vector<WeirEmulatedAccess> accesses;  // by begin
  std::vector<LaunchedPointer> unknown;      // of launches, in no tensor of any op
};

// Frames are kept for the next op, so that no op allocates.
struct OpStack {
  std::vector<OpOnStack> ops;
  size_t depth = 0;
};
thread_local OpStack stack;
thread_local std::vector<Access> found;

// Tensors of one op seldom overlap, and a pointer is mostly a tensor's first byte: this many before it are looked at.
constexpr size_t kLookedAt = 8;

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

}  // namespace

void RunOpNow(void* handle, const char* what, const WeirEmulatedAccess* accesses, size_t count) {
  Stream* stream = FindStream(static_cast<CUstream>(handle), what);
  if (stream == nullptr) return;
  found.clear();
  for (size_t i = 0; i < count; ++i) found.push_back(FromAbi(accesses[i]));
  OrderLock lock(Order().mutex);
  const Past past = NoteWorkLocked(*stream, what, found.data(), found.size());
  RunLocked(lock, past);
}

void BeginOp(const char* name, const WeirEmulatedAccess* accesses, size_t count) {
  if (stack.depth == stack.ops.size()) stack.ops.emplace_back();
  OpOnStack& op = stack.ops[stack.depth++];
  op.name = name;
  op.accesses.assign(accesses, accesses + count);
  op.unknown.clear();
  if (count > 1) {
    std::sort(op.accesses.begin(), op.accesses.end(),
              [](const WeirEmulatedAccess& a, const WeirEmulatedAccess& b) { return a.begin < b.begin; });
  }
  SetCurrentOp(name);
}

void EndOp(const WeirEmulatedAccess* results, size_t count) {
  if (stack.depth == 0) return;  // it began before this library looked
  OpOnStack& op = stack.ops[stack.depth - 1];
  for (size_t i = 0; i < count && !op.unknown.empty(); ++i) {
    for (const LaunchedPointer& pointer : op.unknown) {
      if (pointer.address < results[i].begin || pointer.address >= EndOf(results[i])) continue;
      const Access written = FromAbi(results[i]);
      NoteWork(*pointer.stream, "result of the op's kernel", &written, 1);
      break;
    }
  }
  --stack.depth;
  SetCurrentOp(stack.depth == 0 ? "" : stack.ops[stack.depth - 1].name);
}

bool InTensorOfOp(uintptr_t address) {
  found.clear();
  for (size_t depth = stack.depth; depth > 0; --depth) {
    if (FindIn(stack.ops[depth - 1], address)) return true;
  }
  return false;
}

void NoteLaunch(Stream& stream, const char* what, const uintptr_t* pointers, size_t count) {
  found.clear();
  for (size_t i = 0; i < count; ++i) {
    bool known = false;
    for (size_t depth = stack.depth; depth > 0 && !known; --depth) {
      known = FindIn(stack.ops[depth - 1], pointers[i]);
    }
    if (known) continue;
    found.push_back({pointers[i], 1, Use::kUnknown});
    if (stack.depth > 0) stack.ops[stack.depth - 1].unknown.push_back({&stream, pointers[i]});
  }
  NoteWork(stream, what, found.data(), found.size());
}

}  // namespace weir::emulated
