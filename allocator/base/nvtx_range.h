// Ranges and names for profilers (Nsight Systems and others), through NVTX. Domain `weir`; the bytes of a
// range are its u64 payload. When no tool is attached nothing is built: a range then costs one load and one
// branch. Any thread. Nothing fails.
#ifndef WEIR_ALLOCATOR_BASE_NVTX_RANGE_H_
#define WEIR_ALLOCATOR_BASE_NVTX_RANGE_H_

#include <atomic>

#include "allocator/base/options.h"
#include "allocator/base/units.h"

namespace weir {

enum class RangeKind { kEvict, kFetch, kWait, kOutOfMemory };  // shown as evict, fetch, wait, oom

namespace internal {
inline std::atomic<bool> nvtx_attached{false};
void PushNvtxRange(RangeKind kind, Bytes bytes);
void PopNvtxRange();
}  // namespace internal

// Looks for a tool and makes the domain. Until it is called, and with NvtxMode::kOff, there are no ranges.
void StartNvtx(NvtxMode mode);

// Whether a tool is attached and listening.
inline bool NvtxAttached() { return internal::nvtx_attached.load(std::memory_order_acquire); }

// Names the calling thread, and a stream, in the tool's timeline.
void NameThisThread(const char* name);
void NameStream(Stream stream, const char* name);

// A range on the calling thread for as long as it lives; ranges of a thread nest.
class NvtxRange {
 public:
  NvtxRange(RangeKind kind, Bytes bytes) : open_(NvtxAttached()) {
    if (open_) internal::PushNvtxRange(kind, bytes);
  }
  ~NvtxRange() {
    if (open_) internal::PopNvtxRange();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  const bool open_;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BASE_NVTX_RANGE_H_
