#include "pytorch_plugin/allocator_stats.h"

#include <c10/cuda/CUDAFunctions.h>

#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/foreign_blocks.h"
#include "pytorch_plugin/thread_state.h"

namespace weir::plugin {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingDeviceAllocator::DeviceStats;

StatArray Convert(const WeirStat (&from)[WEIR_POOLS]) {
  StatArray to;
  static_assert(std::tuple_size_v<StatArray> == WEIR_POOLS);
  for (size_t i = 0; i < to.size(); ++i) {
    to[i].current = from[i].current;
    to[i].peak = from[i].peak;
    to[i].allocated = from[i].allocated;
    to[i].freed = from[i].freed;
  }
  return to;
}

c10::Device Cuda(int device) { return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device)); }

}  // namespace

Usage UsageOf(int device) {
  Usage usage;
  WeirDeviceStats stats;
  if (weir_device_stats(device, &stats) != 0) {
    usage.allocated = static_cast<size_t>(stats.allocated_bytes[WEIR_ALL].current);
    usage.reserved = static_cast<size_t>(stats.reserved_bytes[WEIR_ALL].current);
  }
  return usage;
}

Room RoomOf(int device) {
  uint64_t free = 0, total = 0;
  return weir_memory_info(device, &free, &total) != 0 ? Room{free, total} : Room{};
}

DeviceStats StatsOf(int device) {
  WeirDeviceStats from;
  DeviceStats to;
  if (weir_device_stats(device, &from) == 0) return to;
  to.allocation = Convert(from.allocation);
  to.segment = Convert(from.segment);
  to.active = Convert(from.active);
  to.inactive_split = Convert(from.inactive_split);
  to.allocated_bytes = Convert(from.allocated_bytes);
  to.reserved_bytes = Convert(from.reserved_bytes);
  to.active_bytes = Convert(from.active_bytes);
  to.inactive_split_bytes = Convert(from.inactive_split_bytes);
  to.requested_bytes = Convert(from.requested_bytes);
  to.max_split_size = -1;  // no limit: what torch's own says by default
  to.num_alloc_retries = from.num_alloc_retries;
  to.num_ooms = from.num_ooms;
  to.num_sync_all_streams = from.num_sync_all_streams;
  to.num_device_alloc = from.num_device_alloc;
  to.num_device_free = from.num_device_free;
  return to;
}

void ReportToProfiler(void* address, int64_t bytes, int device) {
  const Usage usage = UsageOf(device);
  c10::reportMemoryUsageToProfiler(address, bytes, usage.allocated, usage.reserved, Cuda(device));
}

void ReportFreeToProfiler(void* address) {
  void* base = nullptr;
  uint64_t bytes = 0;
  if (weir_find_block(address, &base, &bytes) == 0 && !FindForeign(address, &base, &bytes)) return;
  c10::DeviceIndex device =
      0;  // the block's, as good as always: only the profiler's per-device sum depends on it
  if (c10::cuda::GetDevice(&device) != cudaSuccess) return;
  const Usage usage = UsageOf(device);
  c10::reportMemoryUsageToProfiler(address, -static_cast<int64_t>(bytes), usage.allocated - bytes,
                                   usage.reserved, Cuda(device));
}

}  // namespace weir::plugin

extern "C" void weir_plugin_memory_info(int device, size_t* free_bytes, size_t* total_bytes) {
  if (weir::plugin::InForkedChild() || weir_shows_cap(device) == 0) return;
  const weir::plugin::Room room = weir::plugin::RoomOf(device);
  if (room.total == 0) return;
  *free_bytes = room.free;
  *total_bytes = room.total;
}
