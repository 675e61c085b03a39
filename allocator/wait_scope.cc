#include "allocator/wait_scope.h"

namespace weir {
namespace {

WaitHooks hooks;
std::atomic<uint64_t> waits{0};

}  // namespace

WaitScope::WaitScope() {
  waits.fetch_add(1, std::memory_order_relaxed);
  if (hooks.begin != nullptr) token_ = hooks.begin();
}

WaitScope::~WaitScope() {
  if (hooks.end != nullptr) hooks.end(token_);
}

void WaitScope::SetHooks(WaitHooks new_hooks) { hooks = new_hooks; }

uint64_t WaitScope::count() { return waits.load(std::memory_order_relaxed); }

}  // namespace weir
