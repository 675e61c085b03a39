#include "tools/emulated_gpu/device/live_blocks.h"

#include <dlfcn.h>

#include <atomic>

namespace weir::emulated {
namespace {

using LifeOf = int32_t (*)(const void* address, uint64_t bytes);
std::atomic<LifeOf> life_of{nullptr};

Life Ask(uintptr_t address, size_t bytes) {
  const LifeOf ask = life_of.load(std::memory_order_acquire);
  return ask == nullptr ? Life::kNotAsked
                        : static_cast<Life>(ask(reinterpret_cast<const void*>(address), bytes));
}

}  // namespace

void FindAllocator() {
  if (life_of.load(std::memory_order_acquire) != nullptr) return;
  void* core = dlopen("libweir_core.so", RTLD_NOLOAD | RTLD_LAZY);
  if (core == nullptr) return;
  life_of.store(reinterpret_cast<LifeOf>(dlsym(core, "weir_life_of")), std::memory_order_release);
}

Life LifeOfRange(uintptr_t begin, size_t size) { return Ask(begin, size); }
Life LifeOfPointer(uintptr_t address) { return Ask(address, 0); }

}  // namespace weir::emulated
