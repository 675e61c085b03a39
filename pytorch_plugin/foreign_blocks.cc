#include "pytorch_plugin/foreign_blocks.h"

#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "pytorch_plugin/thread_state.h"

namespace weir::plugin {
namespace {

using Source = std::shared_ptr<ForeignSource>;

constexpr uint64_t kGranule = 512;
constexpr uint64_t kAlwaysFits = uint64_t{1} << 20;  // a block up to this size serves any smaller request

struct ForeignBlock {
  Source source;
  uint64_t bytes = 0;
  uint64_t requested = 0;  // 0: free
  cudaStream_t stream = nullptr;
  std::vector<cudaStream_t> recorded;  // other streams that used it
  std::vector<cudaEvent_t> waits;      // of a free block: until these have passed nobody may have it
};

// Free blocks without waits: of a source and stream, by size.
using FreeKey = std::tuple<const ForeignSource*, cudaStream_t, uint64_t, void*>;

// The mutex is a leaf. No driver call that waits is made while it is held.
struct Blocks {
  std::mutex mutex;
  std::map<void*, ForeignBlock> all;
  std::set<FreeKey> free;
  std::set<void*> waiting;
};

Blocks& AllBlocks() {
  static auto* blocks = new Blocks;  // never destroyed: tensors are freed while the process exits
  return *blocks;
}

// The number of blocks, for the many calls about addresses that are none.
std::atomic<size_t> count{0};

FreeKey KeyOf(void* address, const ForeignBlock& block) {
  return {block.source.get(), block.stream, block.bytes, address};
}

int DeviceOf(const ForeignBlock& block) { return block.source->device; }

// Blocks whose recorded streams have passed their free can be had again.
void Settle(Blocks& blocks) {
  for (auto at = blocks.waiting.begin(); at != blocks.waiting.end();) {
    ForeignBlock& block = blocks.all.at(*at);
    std::erase_if(block.waits, [](cudaEvent_t event) {
      if (cudaEventQuery(event) == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return false;
      }
      (void)cudaEventDestroy(event);
      return true;
    });
    if (!block.waits.empty()) {
      ++at;
      continue;
    }
    blocks.free.insert(KeyOf(*at, block));
    at = blocks.waiting.erase(at);
  }
}

// The smallest free block of `source` that serves `bytes`; null: none.
void* TakeFree(Blocks& blocks, const ForeignSource* source, uint64_t bytes, cudaStream_t stream) {
  Settle(blocks);
  auto fit = blocks.free.lower_bound(FreeKey{source, stream, bytes, nullptr});
  if (fit == blocks.free.end() || std::get<0>(*fit) != source || std::get<1>(*fit) != stream) return nullptr;
  if (std::get<2>(*fit) > std::max(2 * bytes, kAlwaysFits)) return nullptr;
  void* address = std::get<3>(*fit);
  blocks.free.erase(fit);
  return address;
}

void* HandOut(Blocks& blocks, void* address, uint64_t requested) {
  ForeignBlock& block = blocks.all.at(address);
  block.requested = requested;
  weir_count_outside(DeviceOf(block), address, block.bytes, requested, block.stream, 1);
  return address;
}

void SayNothingCame(WeirError* error, uint64_t bytes) {
  error->code = WEIR_OUT_OF_MEMORY;
  std::snprintf(
      error->text, sizeof error->text,
      "CUDA out of memory. Tried to allocate %llu bytes. The allocator of the memory pool gave none.",
      static_cast<unsigned long long>(bytes));
}

// An event behind what is queued on `stream`; null: none could be recorded, and the device was waited for (the stream may
// be destroyed, or CUDA gone).
cudaEvent_t EventOn(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess) {
    if (cudaEventRecord(event, stream) == cudaSuccess) return event;
    (void)cudaEventDestroy(event);
  }
  (void)cudaDeviceSynchronize();
  (void)cudaGetLastError();
  return nullptr;
}

std::vector<cudaEvent_t> EventsOn(int device, const std::vector<cudaStream_t>& streams) {
  std::vector<cudaEvent_t> events;
  if (streams.empty()) return events;
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  for (cudaStream_t stream : streams) {
    if (cudaEvent_t event = EventOn(stream)) events.push_back(event);
  }
  return events;
}

// Out of the table, before the allocator has it back: another thread may get the same address from it at once.
std::vector<std::pair<void*, ForeignBlock>> TakeIdleOfEnded(int device) {
  Blocks& blocks = AllBlocks();
  std::lock_guard<std::mutex> lock(blocks.mutex);
  std::vector<std::pair<void*, ForeignBlock>> idle;
  for (auto at = blocks.all.begin(); at != blocks.all.end();) {
    ForeignBlock& block = at->second;
    if (block.requested != 0 || !block.source->ended || DeviceOf(block) != device) {
      ++at;
      continue;
    }
    blocks.free.erase(KeyOf(at->first, block));
    blocks.waiting.erase(at->first);
    idle.emplace_back(at->first, std::move(block));
    at = blocks.all.erase(at);
  }
  count.store(blocks.all.size(), std::memory_order_release);
  return idle;
}

// A new block from the pool's own allocator, which counts already.
void* AskSource(ForeignSource& source, uint64_t bytes, WeirError* error) {
  void* address = nullptr;
  try {
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(source.device));
    address = source.allocator->raw_alloc(bytes);
  } catch (...) {
    weir_give_outside(source.device, bytes);
    throw;
  }
  if (address == nullptr) {
    weir_give_outside(source.device, bytes);
    SayNothingCame(error, bytes);
  }
  return address;
}

}  // namespace

void* AllocateForeign(const Source& source, uint64_t bytes, cudaStream_t stream, WeirError* error) {
  const uint64_t size = (bytes + kGranule - 1) / kGranule * kGranule;
  Blocks& blocks = AllBlocks();
  {
    std::lock_guard<std::mutex> lock(blocks.mutex);
    if (void* address = TakeFree(blocks, source.get(), size, stream)) return HandOut(blocks, address, bytes);
  }
  if (weir_take_outside(source->device, size, stream, error) != WEIR_OK) return nullptr;
  void* address = AskSource(*source, size, error);
  if (address == nullptr) return nullptr;
  std::lock_guard<std::mutex> lock(blocks.mutex);
  blocks.all[address] = ForeignBlock{source, size, 0, stream, {}, {}};
  count.store(blocks.all.size(), std::memory_order_release);
  return HandOut(blocks, address, bytes);
}

void* BorrowForeign(int device, uint64_t bytes, cudaStream_t stream) {
  if (count.load(std::memory_order_acquire) == 0) return nullptr;
  Blocks& blocks = AllBlocks();
  std::lock_guard<std::mutex> lock(blocks.mutex);
  Settle(blocks);
  for (auto at = blocks.free.begin(); at != blocks.free.end(); ++at) {
    const auto [source, of_stream, size, address] = *at;
    if (!source->lends || source->device != device || of_stream != stream || size < bytes) continue;
    blocks.free.erase(at);
    return HandOut(blocks, address, bytes);
  }
  return nullptr;
}

void SetLends(ForeignSource& source, bool lends) {
  std::lock_guard<std::mutex> lock(AllBlocks().mutex);
  source.lends = lends;
}

void EndSource(ForeignSource& source) {
  std::lock_guard<std::mutex> lock(AllBlocks().mutex);
  source.ended = true;
  source.lends = false;
}

bool FreeForeign(void* address) noexcept try {
  if (count.load(std::memory_order_acquire) == 0) return false;
  Blocks& blocks = AllBlocks();
  int device = 0;
  std::vector<cudaStream_t> recorded;
  {
    std::lock_guard<std::mutex> lock(blocks.mutex);
    auto at = blocks.all.find(address);
    if (at == blocks.all.end() || at->second.requested == 0) return false;
    recorded = std::move(at->second.recorded);
    at->second.recorded.clear();
    device = DeviceOf(at->second);
  }
  std::vector<cudaEvent_t> waits = EventsOn(device, recorded);  // it is still the caller's block
  std::lock_guard<std::mutex> lock(blocks.mutex);
  ForeignBlock& block = blocks.all.at(address);
  weir_count_outside(device, address, block.bytes, block.requested, block.stream, 0);
  block.requested = 0;
  block.waits = std::move(waits);
  if (block.waits.empty()) {
    blocks.free.insert(KeyOf(address, block));
  } else {
    blocks.waiting.insert(address);
  }
  return true;
} catch (...) {  // CUDA is gone: the block is the process's last
  return true;
}

void RecordForeign(void* address, cudaStream_t stream) {
  if (count.load(std::memory_order_acquire) == 0) return;
  Blocks& blocks = AllBlocks();
  std::lock_guard<std::mutex> lock(blocks.mutex);
  auto at = blocks.all.find(address);
  if (at == blocks.all.end() || at->second.stream == stream) return;
  std::vector<cudaStream_t>& recorded = at->second.recorded;
  if (std::find(recorded.begin(), recorded.end(), stream) == recorded.end()) recorded.push_back(stream);
}

bool FindForeign(const void* address, void** base, uint64_t* bytes) {
  if (count.load(std::memory_order_acquire) == 0) return false;
  Blocks& blocks = AllBlocks();
  std::lock_guard<std::mutex> lock(blocks.mutex);
  auto after = blocks.all.upper_bound(const_cast<void*>(address));
  if (after == blocks.all.begin()) return false;
  const auto& [first, block] = *std::prev(after);
  if (static_cast<const char*>(address) >= static_cast<char*>(first) + block.bytes) return false;
  if (block.requested == 0) return false;
  *base = first;
  *bytes = block.requested;
  return true;
}

// Reached from destructors: it must not throw.
bool ReturnForeign(int device) noexcept try {
  if (count.load(std::memory_order_acquire) == 0 || InForkedChild()) return false;
  std::vector<std::pair<void*, ForeignBlock>> idle = TakeIdleOfEnded(device);
  if (idle.empty()) return false;
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  (void)cudaDeviceSynchronize();
  for (auto& [address, block] : idle) {
    for (cudaEvent_t event : block.waits) (void)cudaEventDestroy(event);
    block.source->allocator->raw_delete(address);
    weir_give_outside(device, block.bytes);
  }
  return true;
} catch (const std::exception& failure) {
  weir_log(1, failure.what());
  return false;
}

}  // namespace weir::plugin
