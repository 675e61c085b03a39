#include "pytorch_plugin/memory_pools.h"

#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "pytorch_plugin/foreign_blocks.h"
#include "pytorch_plugin/refuse.h"
#include "pytorch_plugin/thread_state.h"

namespace weir::plugin {
namespace {

using c10::MempoolId_t;
using c10::cuda::CUDACachingAllocator::CUDAAllocator;

struct Key {
  int device;
  MempoolId_t id;
  friend auto operator<=>(const Key&, const Key&) = default;
};

struct MemoryPool {
  int uses = 0;
  bool blocks_apart = false;
  uint32_t core = 0;                       // weir_make_pool; 0 until the first block
  std::shared_ptr<ForeignSource> foreign;  // instead of Weir's memory
};

struct Opened {
  Key pool;
  PoolFilter filter;
};

// The mutex is a leaf, but for the core's own locks.
struct Pools {
  std::mutex mutex;
  std::map<Key, MemoryPool> pools;
  std::vector<Opened> open;  // in order of opening
};

Pools& AllPools() {
  static auto* pools = new Pools;  // never destroyed: tensors are freed while the process exits
  return *pools;
}

// The number of open pools, for allocations that need not look further.
std::atomic<int> open_pools{0};

MemoryPool* Find(Pools& all, const Key& key) {
  auto at = all.pools.find(key);
  return at == all.pools.end() ? nullptr : &at->second;
}

MemoryPool& Get(Pools& all, const Key& key) {
  MemoryPool* pool = Find(all, key);
  TORCH_CHECK(pool != nullptr, "memory pool (", key.id.first, ", ", key.id.second,
              ") does not exist on device ", key.device, ", or has been released");
  return *pool;
}

cudaStream_t CurrentStream(int device) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)).stream();
}

// Where a block comes from: the core's pool (0: the general heap), or another allocator.
struct Route {
  uint32_t core = 0;
  std::shared_ptr<ForeignSource> foreign;
};

// For a block on `stream`. None: *error says why.
std::optional<Route> RouteFor(int device, cudaStream_t stream, WeirError* error) {
  Pools& all = AllPools();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto open = std::find_if(all.open.rbegin(), all.open.rend(), [&](const Opened& opened) {
    return opened.pool.device == device && opened.filter(stream);
  });
  if (open == all.open.rend()) return Route{};
  MemoryPool& pool = all.pools.at(open->pool);
  if (pool.foreign == nullptr && pool.core == 0) {
    pool.core = weir_make_pool(device, error);
    if (pool.core == 0) return std::nullopt;
    if (pool.blocks_apart) weir_keep_blocks_apart(device, pool.core);
  }
  return Route{pool.core, pool.foreign};
}

}  // namespace

void CreateOrRetainPool(int device, MempoolId_t id, std::shared_ptr<CUDAAllocator> allocator) {
  Pools& all = AllPools();
  std::lock_guard<std::mutex> lock(all.mutex);
  MemoryPool& pool = all.pools[Key{device, id}];
  ++pool.uses;
  if (allocator == nullptr || allocator.get() == c10::cuda::CUDACachingAllocator::get()) return;
  TORCH_CHECK(pool.uses == 1, "the allocator of a memory pool is chosen when the pool is made");
  pool.foreign = std::make_shared<ForeignSource>(ForeignSource{device, std::move(allocator)});
}

void ReleasePool(int device, MempoolId_t id) {
  if (InForkedChild()) return;  // a lock may be held there for ever
  Pools& all = AllPools();
  MemoryPool ended;
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    MemoryPool& pool = Get(all, Key{device, id});
    if (--pool.uses > 0) return;
    ended = std::move(pool);
    all.pools.erase(Key{device, id});
  }
  if (ended.core != 0) weir_end_pool(device, ended.core);
  if (ended.foreign != nullptr) EndSource(*ended.foreign);
}

int PoolUses(int device, MempoolId_t id) {
  Pools& all = AllPools();
  std::lock_guard<std::mutex> lock(all.mutex);
  const MemoryPool* pool = Find(all, Key{device, id});
  return pool == nullptr ? 0 : pool->uses;
}

void SetBlocksApart(int device, MempoolId_t id) {
  Pools& all = AllPools();
  std::lock_guard<std::mutex> lock(all.mutex);
  MemoryPool& pool = Get(all, Key{device, id});
  pool.blocks_apart = true;
  if (pool.core != 0) weir_keep_blocks_apart(device, pool.core);
}

void SetUseOnOom(int device, MempoolId_t id, bool use) {
  Pools& all = AllPools();
  std::lock_guard<std::mutex> lock(all.mutex);
  MemoryPool& pool = Get(all, Key{device, id});
  if (pool.foreign != nullptr) SetLends(*pool.foreign, use);
}

void OpenPool(int device, MempoolId_t id, PoolFilter filter) {
  // A capture has not begun when its pool is opened.
  if (!filter(CurrentStream(device))) Refuse("CUDA graphs (beginAllocateToPool)");
  Pools& all = AllPools();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.open.push_back(Opened{Key{device, id}, std::move(filter)});
  ++all.pools[Key{device, id}].uses;
  open_pools.fetch_add(1, std::memory_order_relaxed);
}

void ClosePool(int device, MempoolId_t id) {
  const cudaStream_t stream = CurrentStream(device);
  Pools& all = AllPools();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto is_pool = [&](const Opened& opened) { return opened.pool == Key{device, id}; };
  auto at = std::find_if(all.open.rbegin(), all.open.rend(),
                         [&](const Opened& opened) { return is_pool(opened) && opened.filter(stream); });
  if (at == all.open.rend()) at = std::find_if(all.open.rbegin(), all.open.rend(), is_pool);
  TORCH_CHECK(at != all.open.rend(), "memory pool (", id.first, ", ", id.second, ") is not in use");
  all.open.erase(std::next(at).base());
  open_pools.fetch_sub(1, std::memory_order_relaxed);
}

void* AllocateFromPools(int device, uint64_t bytes, void* stream, WeirError* error) {
  // Relaxed: who opened a pool for this thread is this thread, or has told it.
  if (C10_LIKELY(open_pools.load(std::memory_order_relaxed) == 0)) {
    return weir_allocate(device, bytes, stream, error);
  }
  const std::optional<Route> route = RouteFor(device, static_cast<cudaStream_t>(stream), error);
  if (!route.has_value()) return nullptr;
  if (route->foreign != nullptr) {
    return AllocateForeign(route->foreign, bytes, static_cast<cudaStream_t>(stream), error);
  }
  return weir_allocate_in_pool(device, bytes, stream, route->core, error);
}

}  // namespace weir::plugin
