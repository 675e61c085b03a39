// The core's figures in torch's shapes: what torch.cuda.memory_* print and what the profiler is told.
// Any thread. Bytes.
#ifndef WEIR_PYTORCH_PLUGIN_ALLOCATOR_STATS_H_
#define WEIR_PYTORCH_PLUGIN_ALLOCATOR_STATS_H_

#include <c10/core/CachingDeviceAllocator.h>

#include <cstddef>
#include <cstdint>

namespace weir::plugin {

// Of one device: what PyTorch holds, frames held, and the cap with what is free under it.
struct Usage {
  size_t allocated = 0, reserved = 0;
};
Usage UsageOf(int device);

// What may still be handed out without evicting, of what. Asks the driver.
struct Room {
  size_t free = 0, total = 0;
};
Room RoomOf(int device);

// Evicted blocks count as allocated but not as reserved, so allocated may be the larger one.
c10::CachingDeviceAllocator::DeviceStats StatsOf(int device);

void ReportToProfiler(void* address, int64_t bytes, int device);
// Before the block is freed.
void ReportFreeToProfiler(void* address);

}  // namespace weir::plugin

// The memory of `device` as the job is told (WEIR_SHOW): in place of what the driver said, in bytes, or unchanged. For the loader
// and for Python.
extern "C" __attribute__((visibility("default"))) void weir_plugin_memory_info(int device, size_t* free_bytes,
                                                                               size_t* total_bytes);

#endif  // WEIR_PYTORCH_PLUGIN_ALLOCATOR_STATS_H_
