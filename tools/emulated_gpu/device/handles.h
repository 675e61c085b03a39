// Slots for streams and events. A handle is the address of its slot, never of freed memory, so that a dead
// handle is recognised. Any thread. Slots are reused as late as possible.
#ifndef WEIR_EMULATED_GPU_DEVICE_HANDLES_H_
#define WEIR_EMULATED_GPU_DEVICE_HANDLES_H_

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>

// Of LeakSanitizer's interface, null without it: what a live slot owns is no leak.
extern "C" __attribute__((weak)) void __lsan_register_root_region(const void* begin, size_t size);

namespace weir::emulated {

// T has a member `std::atomic<bool> alive`.
template <typename T, size_t kMost>
class HandleTable {
 public:
  // Null when kMost are alive.
  T* Make() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (slots_ == nullptr) {
      void* room = mmap(nullptr, kMost * sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (room == MAP_FAILED) return nullptr;
      slots_ = static_cast<T*>(room);
    }
    T* slot = nullptr;
    if (used_ < kMost) {
      slot = slots_.load() + used_++;
      if (__lsan_register_root_region != nullptr) __lsan_register_root_region(slot, sizeof(T));
    } else if (!free_.empty()) {
      slot = free_.front();
      free_.pop_front();
    } else {
      return nullptr;
    }
    new (slot) T;
    slot->alive.store(true, std::memory_order_release);
    return slot;
  }

  void Kill(T* slot) {
    slot->alive.store(false, std::memory_order_release);
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(slot);
  }

  size_t alive() {
    std::lock_guard<std::mutex> lock(mutex_);
    return used_ - free_.size();
  }

  // Null when the address is no live slot.
  T* Find(const void* handle) const {
    T* slots = slots_.load(std::memory_order_acquire);
    const auto offset = reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(slots);
    if (slots == nullptr || offset >= kMost * sizeof(T) || offset % sizeof(T) != 0) return nullptr;
    T* slot = slots + offset / sizeof(T);
    return slot->alive.load(std::memory_order_acquire) ? slot : nullptr;
  }

 private:
  std::mutex mutex_;
  std::atomic<T*> slots_{nullptr};
  size_t used_ = 0;
  std::deque<T*> free_;
};

}  // namespace weir::emulated

#endif
