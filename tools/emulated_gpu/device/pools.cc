#include "tools/emulated_gpu/device/pools.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/addresses.h"
#include "tools/emulated_gpu/device/capture.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/handles.h"
#include "tools/emulated_gpu/device/known_bytes.h"
#include "tools/emulated_gpu/device/memory.h"
#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/pool_ranges.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/streams.h"

namespace weir::emulated {

struct Pool {
  std::atomic<bool> alive{false};
  std::atomic<uint32_t> reached_by{0};  // a bit for each device
  // constant:
  int device = 0;
  bool is_default = false;
  size_t most = SIZE_MAX;
  // guarded by the lock of pools:
  PoolRanges ranges;
  ReuseRules rules;
  uint64_t threshold = 0, used = 0, used_high = 0, reserved_high = 0;
  bool destroyed = false;
};

namespace {

struct Block {
  Pool* pool;
  size_t size;
};

constexpr size_t kChunk = size_t{32} << 20;  // unverified: what a pool takes from the device at once
constexpr size_t kAlignment = 512;           // of blocks, as cudaMalloc's

auto& pools = *new HandleTable<Pool, 1 << 12>;
std::mutex mutex;
auto& all = *new std::vector<Pool*>;             // guarded by mutex; those too that wait for their blocks
auto& blocks = *new std::map<uintptr_t, Block>;  // guarded by mutex
Pool* default_pools[kMostDevices] = {};          // guarded by mutex; made at the first question
Pool* current_pools[kMostDevices] = {};          // guarded by mutex
std::atomic<size_t> reserved_in_all{0};

using Lock = std::lock_guard<std::mutex>;

size_t AlignUp(size_t value, size_t alignment) { return (value + alignment - 1) / alignment * alignment; }
CUmemoryPool HandleOf(Pool* pool) { return reinterpret_cast<CUmemoryPool>(pool); }

Pool* Find(CUmemoryPool handle, const char* call) {
  Pool* pool = pools.Find(handle);
  if (pool == nullptr) Report("%s: memory pool %p is not alive", call, static_cast<void*>(handle));
  return pool;
}

Pool* NewPool(int device) {
  Pool* pool = pools.Make();
  if (pool == nullptr) return nullptr;
  pool->device = device;
  pool->reached_by = 1u << device;
  all.push_back(pool);
  return pool;
}

Pool* DefaultLocked(int device) {
  Pool*& pool = default_pools[device];
  if (pool == nullptr && (pool = NewPool(device)) != nullptr) pool->is_default = true;
  return pool;
}

Pool* CurrentLocked(int device) {
  return current_pools[device] != nullptr ? current_pools[device] : DefaultLocked(device);
}

void ReleaseLocked(Pool& pool, size_t keep) {
  std::vector<PoolRanges::Chunk> unused;
  {
    Lock order(Order().mutex);
    unused = pool.ranges.TakeUnusedLocked(keep);
  }
  for (const PoolRanges::Chunk& chunk : unused) {
    RegionsRemoved(chunk.begin, chunk.size, "the trim of a memory pool");
    ReturnUsableRange(chunk.begin, chunk.size);
    ReturnDeviceBytes(PhysicalDevice(pool.device), chunk.size);
    reserved_in_all -= chunk.size;
  }
}

bool GrowLocked(Pool& pool, size_t held) {
  for (const size_t unit : {kChunk, kGranularity}) {
    const size_t size = AlignUp(held, unit);
    if (size > pool.most || pool.ranges.reserved() > pool.most - size) continue;
    if (!TakeDeviceBytes(PhysicalDevice(pool.device), size)) continue;
    const uintptr_t begin = NewUsableRange(size);
    if (begin == 0) {
      ReturnDeviceBytes(PhysicalDevice(pool.device), size);
      return false;
    }
    if (Settings().poison) std::memset(reinterpret_cast<void*>(begin), 0xCB, size);
    RegionAdded(begin, size, begin, /*host=*/false);
    pool.ranges.AddChunk(begin, size);
    pool.reserved_high = std::max<uint64_t>(pool.reserved_high, pool.ranges.reserved());
    reserved_in_all += size;
    return true;
  }
  return false;
}

// Takes a range and puts the allocation on the stream; 0 when the pool has none.
uintptr_t TakeLocked(Pool& pool, size_t size, Stream& stream) {
  Lock order(Order().mutex);
  StepLocked(stream);
  const uintptr_t address = pool.ranges.TakeLocked(AlignUp(size, kAlignment), stream, pool.rules);
  const Access whole{address, size, Use::kWrite};
  if (address != 0) NoteWorkLocked(stream, "cudaMallocAsync", &whole, 1);
  return address;
}

// What others hold and do not use goes back before there is too little.
uintptr_t TakeOrGrowLocked(Pool& pool, size_t size, Stream& stream) {
  const size_t held = AlignUp(size, kAlignment);
  uintptr_t address = TakeLocked(pool, size, stream);
  if (address != 0) return address;
  if (!GrowLocked(pool, held)) {
    for (Pool* other : all) {
      if (other->device == pool.device) ReleaseLocked(*other, 0);
    }
    if (!GrowLocked(pool, held)) return 0;
  }
  return TakeLocked(pool, size, stream);
}

void DropIfUnusedLocked(Pool* pool) {
  if (!pool->destroyed || pool->used > 0) return;
  ReleaseLocked(*pool, 0);
  if (pool->ranges.reserved() > 0) return;  // a free is not complete
  all.erase(std::find(all.begin(), all.end(), pool));
  pools.Kill(pool);
}

// A call on a stream that captures would have to become a node.
Status RefuseCapture(const Stream& stream, const char* call) {
  if (!CaptureDecides(stream)) return CUDA_SUCCESS;
  NoteNotSupported(call);
  const Status status = CheckAskedStream(stream);
  return status == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ? status : CUDA_ERROR_NOT_SUPPORTED;
}

template <typename Free>
Status FreeBlock(uintptr_t address, Free&& free) {
  Lock lock(mutex);
  const auto known = blocks.find(address);
  if (known == blocks.end()) {
    Report("free of 0x%lx to a memory pool, of which it is no block (freed twice, or never made)", address);
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Block block = known->second;
  blocks.erase(known);
  BlockRemoved(address);
  const size_t held = AlignUp(block.size, kAlignment);
  block.pool->ranges.Give(address, held, free(block));
  block.pool->used -= held;
  DropIfUnusedLocked(block.pool);
  return CUDA_SUCCESS;
}

}  // namespace

Status DefaultPool(CUmemoryPool* handle, int device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Lock lock(mutex);
  *handle = HandleOf(DefaultLocked(device));
  return CUDA_SUCCESS;
}

Status CurrentPool(CUmemoryPool* handle, int device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Lock lock(mutex);
  *handle = HandleOf(CurrentLocked(device));
  return CUDA_SUCCESS;
}

Status SetCurrentPool(int device, CUmemoryPool handle) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Pool* pool = Find(handle, "set memory pool");
  if (pool == nullptr || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(mutex);
  current_pools[device] = pool;
  return CUDA_SUCCESS;
}

Status CreatePool(CUmemoryPool* handle, const CUmemPoolProps& properties) {
  const bool ours = properties.allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                    properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (properties.handleTypes != CU_MEM_HANDLE_TYPE_NONE || (properties.allocType != 0 && !ours)) {
    NoteNotSupported("memory pools of the host, or that are exported");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (!ours) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(properties.location.id)) return CUDA_ERROR_INVALID_DEVICE;
  Lock lock(mutex);
  Pool* pool = NewPool(properties.location.id);
  if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (properties.maxSize != 0) pool->most = properties.maxSize;
  *handle = HandleOf(pool);
  return CUDA_SUCCESS;
}

Status DestroyPool(CUmemoryPool handle) {
  Pool* pool = Find(handle, "memory pool destroy");
  if (pool == nullptr || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(mutex);
  for (Pool*& current : current_pools) {
    if (current == pool) current = nullptr;
  }
  pool->alive = false;  // the slot is free when its memory is
  pool->destroyed = true;
  DropIfUnusedLocked(pool);
  return CUDA_SUCCESS;
}

Status TrimPool(CUmemoryPool handle, size_t keep) {
  Pool* pool = Find(handle, "memory pool trim");
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(mutex);
  ReleaseLocked(*pool, keep);
  return CUDA_SUCCESS;
}

Status SetPoolAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, const void* value) {
  Pool* pool = Find(handle, "memory pool attribute");
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(mutex);
  const auto number = [value] { return *static_cast<const cuuint64_t*>(value); };
  const auto flag = [value] { return *static_cast<const int*>(value); };
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      pool->rules.follow_events = flag();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      pool->rules.opportunistic = flag();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->rules.internal_dependencies = flag();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->threshold = number();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:  // documented: to 0, which starts the count anew
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (number() != 0) return CUDA_ERROR_INVALID_VALUE;
      attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used_high = pool->used
                                                 : pool->reserved_high = pool->ranges.reserved();
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

Status PoolAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const Pool* pool = Find(handle, "memory pool attribute");
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(mutex);
  const auto number = [value](uint64_t is) {
    *static_cast<cuuint64_t*>(value) = is;
    return CUDA_SUCCESS;
  };
  const auto flag = [value](int is) {
    *static_cast<int*>(value) = is;
    return CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return flag(pool->rules.follow_events);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      return flag(pool->rules.opportunistic);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return flag(pool->rules.internal_dependencies);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return number(pool->threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return number(pool->ranges.reserved());
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return number(pool->reserved_high);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return number(pool->used);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return number(pool->used_high);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

Status SetPoolAccess(CUmemoryPool handle, const CUmemAccessDesc* accesses, size_t count) {
  Pool* pool = Find(handle, "memory pool access");
  if (pool == nullptr || (count > 0 && accesses == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  uint32_t reached = pool->reached_by;
  for (size_t i = 0; i < count; ++i) {
    const CUmemLocation& location = accesses[i].location;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDevice(location.id)) return CUDA_ERROR_INVALID_DEVICE;
    const bool own = location.id == pool->device, none = accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
    if (own && none) return CUDA_ERROR_INVALID_VALUE;  // documented: not its own device's
    if (!own && !CanAccessPeer(location.id, pool->device)) return CUDA_ERROR_INVALID_DEVICE;
    reached = none ? reached & ~(1u << location.id) : reached | 1u << location.id;
  }
  pool->reached_by = reached;
  return CUDA_SUCCESS;
}

Status PoolAccess(CUmemAccess_flags* flags, CUmemoryPool handle, const CUmemLocation& location) {
  const Pool* pool = Find(handle, "memory pool access");
  if (pool == nullptr || location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(location.id)) return CUDA_ERROR_INVALID_DEVICE;
  *flags =
      PoolReaches(*pool, location.id) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

Status AllocateAsync(uintptr_t* address, size_t size, CUmemoryPool handle, CUstream stream_handle) {
  *address = 0;
  Stream* stream = FindStream(stream_handle, "cudaMallocAsync");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Pool* pool = handle == nullptr ? nullptr : Find(handle, "cudaMallocFromPoolAsync");
  if (size == 0 || (handle != nullptr && pool == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (const Status refused = RefuseCapture(*stream, "cudaMallocAsync on a stream that captures");
      refused != CUDA_SUCCESS) {
    return refused;
  }
  FinishOps();
  ChargeHost(Micros(Settings().profile->costs.event_us), Busy::kMemory);
  Lock lock(mutex);
  if (pool == nullptr) pool = CurrentLocked(stream->device);
  const uintptr_t found = TakeOrGrowLocked(*pool, size, *stream);
  if (found == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  pool->used += AlignUp(size, kAlignment);
  pool->used_high = std::max(pool->used_high, pool->used);
  blocks[found] = {pool, size};
  BlockAdded(found, size, pool->device, pool);
  ForgetWritten(found, size);
  *address = found;
  return CUDA_SUCCESS;
}

Status FreeAsync(uintptr_t address, CUstream stream_handle) {
  Stream* stream = FindStream(stream_handle, "cudaFreeAsync");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (address == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const Status refused = RefuseCapture(*stream, "cudaFreeAsync on a stream that captures");
      refused != CUDA_SUCCESS) {
    return refused;
  }
  FinishOps();
  ChargeHost(Micros(Settings().profile->costs.event_us), Busy::kMemory);
  return FreeBlock(address, [&](const Block& block) {
    const Access whole{address, block.size, Use::kWrite};
    Lock order(Order().mutex);
    return NoteWorkLocked(*stream, "cudaFreeAsync", &whole, 1);
  });
}

void FreeToPool(uintptr_t address) {
  FreeBlock(address, [](const Block&) { return Past(); });
}

bool PoolReaches(const Pool& pool, int device) { return (pool.reached_by >> device & 1) != 0; }

void ReleaseUnusedPools() {
  if (reserved_in_all == 0) return;
  Lock lock(mutex);
  const std::vector<Pool*> known = all;
  for (Pool* pool : known) {
    if (pool->ranges.reserved() > pool->threshold) ReleaseLocked(*pool, pool->threshold);
    DropIfUnusedLocked(pool);
  }
}

}  // namespace weir::emulated
