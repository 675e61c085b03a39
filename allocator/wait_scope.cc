#include "allocator/wait_scope.h"

#include "trace/recorder.h"

namespace weir {
namespace {

WaitHooks hooks;
std::atomic<uint64_t> waits{0};

}  // namespace

WaitScope::WaitScope(trace::WaitCause cause) : cause_(cause), began_ns_(trace::On() ? trace::Now() : 0) {
  waits.fetch_add(1, std::memory_order_relaxed);
  if (hooks.begin != nullptr) token_ = hooks.begin();
}

WaitScope::~WaitScope() {
  if (began_ns_ != 0) trace::RecordWait(cause_, began_ns_);
  if (hooks.end != nullptr) hooks.end(token_);
}

void WaitScope::SetHooks(WaitHooks new_hooks) { hooks = new_hooks; }

uint64_t WaitScope::count() { return waits.load(std::memory_order_relaxed); }

}  // namespace weir
