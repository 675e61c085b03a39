// A core that moves no bytes: blocks are cudaMalloc'ed, "evicted" only means that the storage carries the
// throwing flag. At the end of every outermost op it evicts all blocks that may leave, so an access that the
// plugin did not announce shows at once. Tests steer it and read its log through the fake_* functions
// (ctypes).
//
// Built as libweir_core.so in a folder of its own; LD_LIBRARY_PATH puts it before the real one.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/core_abi_events.h"

namespace {

struct Block {
  uint64_t bytes = 0;
  void* storage = nullptr;
  bool resident = true, evidence = false, escaped = false, written = false;
};

std::recursive_mutex mutex;
std::map<uintptr_t, Block> blocks;
std::vector<std::string> log_lines;
const WeirHost* host = nullptr;
bool wants_observer = true, always_evict = false;
int failing_touches = 0, blind_threads = 0, address_readers = 0;
uint64_t chunk_bytes = UINT64_MAX, allocated = 0, ops = 0, touched = 0, chunks = 0;
thread_local int depth = 0;
thread_local std::vector<uintptr_t> pins;

int Fail(WeirError* error, const char* text) {
  error->code = WEIR_OUT_OF_MEMORY;
  std::snprintf(error->text, sizeof error->text, "CUDA out of memory. %s", text);
  return WEIR_OUT_OF_MEMORY;
}

std::map<uintptr_t, Block>::iterator Find(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto it = blocks.upper_bound(at);
  if (it == blocks.begin()) return blocks.end();
  --it;
  return at < it->first + it->second.bytes ? it : blocks.end();
}

const Block* BlockOf(const void* storage) {
  for (const auto& [base, block] : blocks) {
    if (block.storage == storage) return &block;
  }
  return nullptr;
}

bool Pinned(uintptr_t base) {
  for (uintptr_t pin : pins) {
    if (pin == base) return true;
  }
  return false;
}

void Evict(uintptr_t base, Block& block) {
  if (!block.resident || !block.evidence || block.escaped || block.storage == nullptr || Pinned(base)) return;
  if (blind_threads > 0) return;
  block.resident = false;
  host->storage_deny(block.storage, reinterpret_cast<void*>(base), "evicted by the fake core");
}

void EvictAll() {
  for (auto& [base, block] : blocks) Evict(base, block);
}

void TouchOne(const WeirTouch& touch) {
  auto it = Find(touch.address);
  if (it == blocks.end()) return;
  Block& block = it->second;
  ++touched;
  pins.push_back(it->first);
  if (touch.storage != nullptr && block.storage == nullptr) {
    host->storage_retain(touch.storage);
    block.storage = touch.storage;
  }
  if (touch.evidence) block.evidence = true;
  if (touch.written) block.written = true;
  if (!block.resident) {
    block.resident = true;
    host->storage_allow(block.storage);
  }
}

bool AllResident(const WeirTouch* touches, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    auto it = Find(touches[i].address);
    if (it != blocks.end() && !it->second.resident) return false;
  }
  return true;
}

using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace

extern "C" {

WEIR_API int32_t weir_start(const WeirHost* given, WeirError*) {
  host = given;
  return WEIR_OK;
}
WEIR_API const WeirTrace* weir_trace() { return nullptr; }
WEIR_API int32_t weir_wants_observer() { return wants_observer; }
WEIR_API int32_t weir_end_watch(int32_t) { return 0; }
WEIR_API void weir_begin_watch() {}
WEIR_API void weir_forget_evidence() {}
WEIR_API int32_t weir_watch_wanted() { return 0; }
WEIR_API int32_t weir_init(int32_t, WeirError* error) {
  if (std::getenv("FAKE_NO_VMM") == nullptr) return WEIR_OK;
  std::snprintf(error->text, sizeof error->text, "the fake core finds no VMM");
  return error->code = WEIR_UNAVAILABLE;
}

WEIR_API void* weir_allocate(int32_t, uint64_t bytes, void*, WeirError* error) {
  auto cuda_malloc = reinterpret_cast<int (*)(void**, size_t)>(dlsym(RTLD_DEFAULT, "cudaMalloc"));
  void* address = nullptr;
  if (cuda_malloc == nullptr || cuda_malloc(&address, bytes) != 0) {
    Fail(error, "fake core: cudaMalloc failed");
    return nullptr;
  }
  Lock lock(mutex);
  Block block;
  block.bytes = bytes;
  blocks[reinterpret_cast<uintptr_t>(address)] = block;
  allocated += bytes;
  if (depth > 0) pins.push_back(reinterpret_cast<uintptr_t>(address));
  return address;
}

WEIR_API void* weir_allocate_in_pool(int32_t device, uint64_t bytes, void* stream, uint32_t,
                                     WeirError* error) {
  return weir_allocate(device, bytes, stream, error);
}
WEIR_API uint32_t weir_make_pool(int32_t, WeirError*) {
  static uint32_t made = 0;
  return ++made;
}
WEIR_API void weir_keep_blocks_apart(int32_t, uint32_t) {}
WEIR_API void weir_end_pool(int32_t, uint32_t) {}
WEIR_API uint32_t weir_pool_of(const void*) { return 0; }

WEIR_API int32_t weir_take_outside(int32_t, uint64_t, void*, WeirError*) { return WEIR_OK; }
WEIR_API void weir_give_outside(int32_t, uint64_t) {}
WEIR_API void weir_count_outside(int32_t, void*, uint64_t, uint64_t, void*, int32_t) {}

WEIR_API int32_t weir_release(void* address) {
  void* storage = nullptr;
  {
    Lock lock(mutex);
    auto it = blocks.find(reinterpret_cast<uintptr_t>(address));
    if (it == blocks.end()) return 0;
    storage = it->second.storage;
    allocated -= it->second.bytes;
    blocks.erase(it);
  }
  auto cuda_free = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_DEFAULT, "cudaFree"));
  if (cuda_free != nullptr) cuda_free(address);
  if (storage != nullptr) host->storage_release(storage);
  return 1;
}

WEIR_API void weir_record_stream(void*, void*, int32_t external) {
  Lock lock(mutex);
  log_lines.push_back("record_stream external=" + std::to_string(external));
}

WEIR_API int32_t weir_find_block(const void* address, void** base, uint64_t* bytes) {
  Lock lock(mutex);
  auto it = Find(address);
  if (it == blocks.end()) return 0;
  *base = reinterpret_cast<void*>(it->first);
  *bytes = it->second.bytes;
  return 1;
}

WEIR_API void weir_op_enter(const char* name) {
  Lock lock(mutex);
  log_lines.push_back(std::string(2 * static_cast<size_t>(depth), ' ') + name);
  ++depth;
}
WEIR_API void weir_op_leave() {
  Lock lock(mutex);
  if (--depth > 0) return;
  pins.clear();
  if (always_evict) EvictAll();
}

WEIR_API int32_t weir_touch(const WeirTouch* touches, size_t count, void*, WeirError* error) {
  Lock lock(mutex);
  if (failing_touches > 0 && !AllResident(touches, count)) {
    --failing_touches;
    return Fail(error, "fake core: told to fail");
  }
  for (size_t i = 0; i < count; ++i) TouchOne(touches[i]);
  return WEIR_OK;
}
WEIR_API int32_t weir_touch_if_resident(const WeirTouch* touches, size_t count, void*) {
  Lock lock(mutex);
  if (!AllResident(touches, count)) return 0;
  for (size_t i = 0; i < count; ++i) TouchOne(touches[i]);
  return 1;
}

WEIR_API void weir_chunk_begin() {
  Lock lock(mutex);
  ++chunks;
  log_lines.push_back("chunk");
}
WEIR_API void weir_chunk_end() {}

WEIR_API int32_t weir_pin_escaped(void* address, void*, WeirError*) {
  Lock lock(mutex);
  auto it = Find(address);
  if (it == blocks.end()) return WEIR_OK;
  it->second.escaped = true;
  if (!it->second.resident) host->storage_allow(it->second.storage);
  it->second.resident = true;
  log_lines.push_back("escaped");
  return WEIR_OK;
}
WEIR_API int32_t weir_is_resident(const void* address) {
  Lock lock(mutex);
  auto it = Find(address);
  return it == blocks.end() || it->second.resident;
}
WEIR_API uint64_t weir_chunk_bytes(int32_t) { return chunk_bytes; }
WEIR_API void weir_count_op() { ++ops; }
WEIR_API void weir_count_event() {}
WEIR_API void weir_read_addresses(int32_t on) {
  Lock lock(mutex);
  address_readers += on != 0 ? 1 : -1;
}
WEIR_API void weir_blind_thread(int32_t on) {
  Lock lock(mutex);
  blind_threads += on != 0 ? 1 : -1;
}

WEIR_API int32_t weir_device_stats(int32_t, WeirDeviceStats* stats) {
  Lock lock(mutex);
  std::memset(stats, 0, sizeof *stats);
  stats->allocated_bytes[WEIR_ALL].current = static_cast<int64_t>(allocated);
  return 1;
}
WEIR_API void weir_reset_peak_stats(int32_t) {}
WEIR_API void weir_reset_accumulated_stats(int32_t) {}
WEIR_API int32_t weir_shows_cap(int32_t) { return 1; }
WEIR_API int32_t weir_memory_info(int32_t, uint64_t* free_bytes, uint64_t* total_bytes) {
  *free_bytes = 1 << 20;
  *total_bytes = 1 << 30;
  return 1;
}
WEIR_API int32_t weir_set_cap(int32_t, uint64_t, WeirError*) { return WEIR_OK; }
WEIR_API int32_t weir_set_fraction(int32_t, double, WeirError*) { return WEIR_OK; }
WEIR_API int32_t weir_add_peer(int32_t, int32_t, WeirError*) { return WEIR_OK; }
WEIR_API uint64_t weir_largest_free(int32_t) { return 1 << 20; }
WEIR_API void weir_empty_cache(int32_t) {}
WEIR_API const WeirSnapshot* weir_take_snapshot(int32_t) { return nullptr; }
WEIR_API void weir_drop_snapshot(const WeirSnapshot*) {}
WEIR_API void weir_watch(int32_t) {}
WEIR_API const void* weir_set_cause(const void*) { return nullptr; }
WEIR_API void weir_take_events(int32_t, void (*)(void*, const WeirEvent*), void*) {}
WEIR_API void weir_log(int32_t, const char* text) { std::fprintf(stderr, "weir: %s\n", text); }
WEIR_API void weir_exit() {}

// ---- what tests use

WEIR_API void fake_always_evict(int on) { always_evict = on != 0; }
WEIR_API void fake_evict_all() {
  Lock lock(mutex);
  EvictAll();
}
WEIR_API void fake_fail_touches(int count) { failing_touches = count; }
WEIR_API void fake_chunk_bytes(uint64_t bytes) { chunk_bytes = bytes; }
WEIR_API int fake_blind_threads() { return blind_threads; }
WEIR_API int fake_address_readers() { return address_readers; }
WEIR_API uint64_t fake_ops() { return ops; }
WEIR_API uint64_t fake_touched() { return touched; }
WEIR_API uint64_t fake_chunks() { return chunks; }
WEIR_API uint64_t fake_blocks() { return blocks.size(); }
// By StorageImpl; -1: not seen in any op.
WEIR_API int fake_is_resident(const void* storage) {
  Lock lock(mutex);
  const Block* block = BlockOf(storage);
  return block == nullptr ? -1 : block->resident;
}
WEIR_API int fake_is_escaped(const void* storage) {
  Lock lock(mutex);
  const Block* block = BlockOf(storage);
  return block == nullptr ? -1 : block->escaped;
}
// Whether any op since the last fake_forget_writes() said that it may write it.
WEIR_API int fake_is_written(const void* storage) {
  Lock lock(mutex);
  const Block* block = BlockOf(storage);
  return block == nullptr ? -1 : block->written;
}
WEIR_API void fake_forget_writes() {
  Lock lock(mutex);
  for (auto& [base, block] : blocks) block.written = false;
}
// The log since the last call, one line each, cut to `size`.
WEIR_API void fake_take_log(char* text, size_t size) {
  Lock lock(mutex);
  std::string all;
  for (const std::string& line : log_lines) all += line + "\n";
  log_lines.clear();
  std::snprintf(text, size, "%s", all.c_str());
}

}  // extern "C"
