// A tracker of allocator entries as NCCL's is one, for trackers_test.py (ctypes): keeps what it is told, and in each call asks
// the allocator for something, which would hang if a lock were held.
#include <c10/cuda/CUDACachingAllocator.h>

#include <mutex>
#include <stdexcept>
#include <string>

namespace {

using c10::CachingDeviceAllocator::TraceEntry;

std::mutex mutex;
std::string told;
int depth = 0;
bool throwing = false;
void* block = nullptr;

const char* NameOf(TraceEntry::Action action) {
  switch (action) {
    case TraceEntry::ALLOC:
      return "alloc";
    case TraceEntry::FREE_REQUESTED:
      return "free_requested";
    case TraceEntry::FREE_COMPLETED:
      return "free_completed";
    case TraceEntry::SEGMENT_MAP:
      return "segment_map";
    case TraceEntry::SEGMENT_UNMAP:
      return "segment_unmap";
    case TraceEntry::OOM:
      return "oom";
    case TraceEntry::SNAPSHOT:
      return "snapshot";
    default:
      return "another";
  }
}

void OnEntry(const TraceEntry& entry) {
  auto* allocator = c10::cuda::CUDACachingAllocator::get();
  (void)allocator->getDeviceStats(entry.device_);
  bool allocate = false;
  {
    std::lock_guard<std::mutex> lock(mutex);
    told += std::string(NameOf(entry.action_)) + " " + std::to_string(entry.addr_) + " " +
            std::to_string(entry.size_) + "\n";
    allocate = entry.size_ == 4242 && entry.action_ == TraceEntry::ALLOC;
    if (++depth > 1) told += "nested\n";
  }
  if (allocate) block = allocator->raw_alloc(2424);
  std::lock_guard<std::mutex> lock(mutex);
  --depth;
  if (throwing) throw std::runtime_error("as it was told to");
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void tracker_attach() {
  c10::cuda::CUDACachingAllocator::get()->attachAllocatorTraceTracker(&OnEntry);
}
__attribute__((visibility("default"))) void tracker_throw(int on) { throwing = on != 0; }
// The lines since the last call, cut to `size`.
__attribute__((visibility("default"))) void tracker_take(char* text, size_t size) {
  std::lock_guard<std::mutex> lock(mutex);
  text[told.copy(text, size - 1)] = '\0';
  told.clear();
}

}  // extern "C"
