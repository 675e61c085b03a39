// The C ABI over the runtime: types and errors are translated, nothing else happens here.
#include "pytorch_plugin/core_abi.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "allocator/base/host_work.h"
#include "allocator/base/log.h"
#include "allocator/base/size_text.h"
#include "pytorch_plugin/core_errors.h"
#include "pytorch_plugin/runtime.h"
#include "trace/recorder.h"

namespace weir {
namespace {

TouchRequest Request(const WeirTouch& touch) {
  return TouchRequest{DeviceAddr::Of(touch.address), touch.storage, touch.evidence != 0};
}

// The touches of one device at a time; nearly always there is one device and no copy to make twice.
template <typename Each>
bool ForEachDevice(const WeirTouch* touches, size_t count, Each each) {
  static thread_local std::vector<TouchRequest>* requests = new std::vector<TouchRequest>;
  Runtime& runtime = Runtime::Get();
  for (int i = 0; i < Runtime::kMaxDevices; ++i) {
    Device* device = runtime.Find(i);
    if (device == nullptr) continue;
    requests->clear();
    for (const WeirTouch& touch : std::span(touches, count)) {
      if (device->allocator->Contains(DeviceAddr::Of(touch.address))) requests->push_back(Request(touch));
    }
    if (!requests->empty() && !each(*device, *requests)) return false;
  }
  return true;
}

Bytes SizeOf(Device& device, std::span<const TouchRequest> requests) {
  Bytes sum;
  for (const TouchRequest& request : requests) {
    if (auto block = device.allocator->FindBlock(request.addr)) sum += block->requested;
  }
  return sum;
}

absl::Status SetCap(Device& device, Bytes cap, Pager::Lowering lowering) {
  if (cap < kPageBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a cap of ", FormatBytes(cap), " for device ",
                                                   device.index.value, " is less than the smallest one, ",
                                                   FormatBytes(kPageBytes)));
  }
  if (cap != Bytes::Max() && cap > device.card_total) {
    Log(LogLevel::kWarn, "a cap of ", FormatBytes(cap), " is more than device ", device.index.value,
        " has: ", FormatBytes(device.card_total.RoundedDownTo(kPageBytes)), " it is");
    cap = device.card_total.RoundedDownTo(kPageBytes);
  }
  absl::Status status = device.pager->SetCap(cap, OpPins::OfThisThread(), lowering);
  if (status.ok()) {
    Log(LogLevel::kInfo, "device ", device.index.value, ": cap ",
        cap == Bytes::Max() ? "none" : FormatBytes(cap));
  }
  return status;
}

// As weir_device_stats counts them.
void RecordPeaks(int index) {
  Device* device = Runtime::Get().Find(index);
  if (device == nullptr) return;
  DeviceAllocator& allocator = *device->allocator;
  trace::RecordPeaks(index, Bytes(static_cast<uint64_t>(allocator.Counters().bytes[kAllPools].peak)),
                     allocator.frames().peak_held().bytes());
}

void* Allocate(int32_t index, Bytes bytes, const Lane& lane, WeirError* error) {
  absl::Status status;
  Device* device = Runtime::Get().GetDevice(index, &status);
  if (device == nullptr) {
    Fail(error, status);
    return nullptr;
  }
  TellWork(HostWork::kMalloc);
  absl::StatusOr<DeviceAddr> addr = device->allocator->Allocate(bytes, lane, OpPins::OfThisThread());
  if (addr.ok()) {
    trace::RecordAllocation(index, *addr, bytes, lane.stream);
    return addr->pointer();
  }
  FailOn(*device, bytes, addr.status(), error);
  return nullptr;
}

WeirStat Export(const Stat& stat) { return WeirStat{stat.current, stat.peak, stat.allocated, stat.freed()}; }

}  // namespace
}  // namespace weir

using namespace weir;  // NOLINT: this file is the boundary of the namespace

extern "C" {

int32_t weir_start(const WeirHost* host, WeirError* error) {
  if (host == nullptr || host->abi_version != WEIR_CORE_ABI_VERSION) {
    return Fail(error, WEIR_INVALID, "the plugin and libweir_core.so are of different versions");
  }
  absl::Status status = Runtime::Get().Start(*host);
  return status.ok() ? WEIR_OK : Fail(error, status);
}

int32_t weir_wants_observer(void) { return Runtime::Get().HasCap() ? 1 : 0; }

int32_t weir_init(int32_t device_count, WeirError* error) {
  absl::Status status = Runtime::Get().Init(device_count);
  return status.ok() ? WEIR_OK : Fail(error, status);
}

void* weir_allocate(int32_t index, uint64_t bytes, void* stream, WeirError* error) {
  return Allocate(index, Bytes(bytes), Lane(Stream::Of(stream)), error);
}

void* weir_allocate_in_pool(int32_t index, uint64_t bytes, void* stream, uint32_t pool, WeirError* error) {
  return Allocate(index, Bytes(bytes), Lane(Stream::Of(stream), PoolId(pool)), error);
}

int32_t weir_release(void* address) {
  Device* device = Runtime::Get().Owner(address);
  if (device == nullptr) return 0;
  TellWork(HostWork::kFree);
  trace::RecordFree(DeviceAddr::Of(address));  // before another thread can get the same address
  return device->allocator->Free(DeviceAddr::Of(address)) ? 1 : 0;
}

void weir_record_stream(void* address, void* stream, int32_t /*external*/) {
  Device* device = Runtime::Get().Owner(address);
  if (device != nullptr) device->allocator->RecordStream(DeviceAddr::Of(address), Stream::Of(stream));
}

int32_t weir_find_block(const void* address, void** base, uint64_t* bytes) {
  Device* device = Runtime::Get().Owner(address);
  if (device == nullptr) return 0;
  std::optional<DeviceAllocator::BlockInfo> block = device->allocator->FindBlock(DeviceAddr::Of(address));
  if (!block.has_value()) return 0;
  if (base != nullptr) *base = block->base.pointer();
  if (bytes != nullptr) *bytes = block->requested.count();
  return 1;
}

int32_t weir_life_of(const void* address, uint64_t bytes) {
  Device* device = Runtime::Get().Owner(address);
  if (device == nullptr) return WEIR_NOT_MINE;
  switch (device->allocator->LifeOf(DeviceAddr::Of(address), Bytes(bytes))) {
    case DeviceAllocator::Life::kAlive:
      return WEIR_ALIVE;
    case DeviceAllocator::Life::kEnd:
      return WEIR_END;
    case DeviceAllocator::Life::kDead:
      break;
  }
  return WEIR_DEAD;
}

void weir_op_enter(const char* name) {
  const std::string_view op(name);
  const bool foreign = op.find("::") != op.npos && !op.starts_with("aten::");
  OpPins::OfThisThread().Enter(name, foreign ? OpPins::Streams::kAny : OpPins::Streams::kOwn);
}
void weir_op_leave(void) { OpPins::OfThisThread().Leave(); }
void weir_chunk_begin(void) { OpPins::OfThisThread().BeginChunk(); }
void weir_chunk_end(void) { OpPins::OfThisThread().EndChunk(); }
void weir_count_op(void) {
  TellWork(HostWork::kOp);
  Runtime::Get().CountOp();
}
int32_t weir_end_watch(int32_t if_quiet) { return Runtime::Get().EndWatch(if_quiet != 0) ? 1 : 0; }
void weir_begin_watch(void) { Runtime::Get().BeginWatch(); }
void weir_forget_evidence(void) { Runtime::Get().ForgetEvidence(); }
int32_t weir_watch_wanted(void) { return DeviceAllocator::WatchWanted() ? 1 : 0; }
void weir_count_event(void) { TellWork(HostWork::kEvent); }
void weir_read_addresses(int32_t on) { Runtime::Get().AddAddressReader(on != 0 ? 1 : -1); }
void weir_blind_thread(int32_t on) { Runtime::Get().AddBlindThread(on != 0 ? 1 : -1); }

int32_t weir_touch(const WeirTouch* touches, size_t count, void* stream, WeirError* error) {
  TellWork(HostWork::kTouch, count);
  OpPins& op = OpPins::OfThisThread();
  size_t pins_before = op.size();
  int32_t code = WEIR_OK;
  ForEachDevice(touches, count, [&](Device& device, const std::vector<TouchRequest>& requests) {
    absl::Status status = device.pager->Touch(requests, op, Stream::Of(stream));
    if (!status.ok()) code = FailOn(device, SizeOf(device, requests), status, error);
    return status.ok();
  });
  if (code != WEIR_OK) op.ReleaseFrom(pins_before);  // of devices that had succeeded
  return code;
}

int32_t weir_touch_if_resident(const WeirTouch* touches, size_t count, void* stream) {
  TellWork(HostWork::kTouch, count);
  OpPins& op = OpPins::OfThisThread();
  size_t pins_before = op.size();
  bool all = ForEachDevice(touches, count, [&](Device& device, const std::vector<TouchRequest>& requests) {
    return device.pager->TouchIfResident(requests, op, Stream::Of(stream));
  });
  if (!all) op.ReleaseFrom(pins_before);
  return all ? 1 : 0;
}

int32_t weir_pin_escaped(void* address, void* stream, WeirError* error) {
  Device* device = Runtime::Get().Owner(address);
  if (device == nullptr) return WEIR_OK;
  absl::Status status =
      device->pager->PinForGood(DeviceAddr::Of(address), OpPins::OfThisThread(), Stream::Of(stream));
  return status.ok() ? WEIR_OK : FailOn(*device, Bytes(), status, error);
}

int32_t weir_is_resident(const void* address) {
  Device* device = Runtime::Get().Owner(address);
  return device == nullptr || device->pager->IsResident(DeviceAddr::Of(address)) ? 1 : 0;
}

uint64_t weir_chunk_bytes(int32_t index) {
  Device* device = Runtime::Get().Find(index);
  if (device == nullptr || !device->allocator->HasCap()) return UINT64_MAX;
  return std::max(device->allocator->cap() / 8, kPageBytes).count();
}

int32_t weir_device_stats(int32_t index, WeirDeviceStats* stats) {
  *stats = WeirDeviceStats{};
  Device* device = Runtime::Get().Find(index);
  if (device == nullptr) return 0;
  DeviceAllocator& allocator = *device->allocator;
  DeviceCounters counters = allocator.Counters();
  FramePool& frames = allocator.frames();
  for (int pool = 0; pool < WEIR_POOLS; ++pool) {
    stats->allocation[pool] = Export(counters.blocks[pool]);
    stats->active[pool] = Export(counters.active[pool]);
    stats->allocated_bytes[pool] = Export(counters.bytes[pool]);
    stats->active_bytes[pool] = Export(counters.active_bytes[pool]);
    stats->requested_bytes[pool] = Export(counters.requested[pool]);
    stats->segment[pool] = Export(counters.extents[pool]);
    stats->reserved_bytes[pool] = Export(counters.reserved[pool]);
  }
  // Reserved is what is physically held, cached and pooled frames included.
  stats->reserved_bytes[WEIR_ALL].current = static_cast<int64_t>(frames.counted().bytes().count());
  stats->reserved_bytes[WEIR_ALL].peak = static_cast<int64_t>(frames.peak_held().bytes().count());
  stats->num_alloc_retries = counters.retries;
  stats->num_ooms = counters.out_of_memory;
  stats->num_device_alloc = counters.extents[kAllPools].allocated;
  stats->num_device_free = counters.extents[kAllPools].freed();
  PagerCounters pager = device->pager->Counters();
  stats->cap = allocator.cap().count();
  stats->resident = frames.counted().bytes().count();
  stats->peak_resident = frames.peak_held().bytes().count();
  stats->floor = allocator.Floor().count();
  stats->spilled_ram = device->ram->used().count();
  stats->evictions = pager.evictions;
  stats->evicted_bytes = pager.evicted_bytes.count();
  stats->fetches = pager.fetches;
  stats->fetched_bytes = pager.fetched_bytes.count();
  stats->ops_observed = Runtime::Get().ops_observed();
  stats->watches = Runtime::Get().watches();
  return 1;
}

void weir_reset_peak_stats(int32_t index) {
  RecordPeaks(index);  // which are lost then
  if (Device* device = Runtime::Get().Find(index)) device->allocator->ResetPeaks();
}

void weir_reset_accumulated_stats(int32_t index) {
  if (Device* device = Runtime::Get().Find(index)) device->allocator->ResetAccumulated();
}

int32_t weir_shows_cap(int32_t index) {
  Runtime& runtime = Runtime::Get();
  if (runtime.options().show_card) return 0;
  absl::Status status;
  const Device* device = runtime.GetDevice(index, &status);
  return device != nullptr && device->allocator->cap() < device->card_total ? 1 : 0;
}

int32_t weir_memory_info(int32_t index, uint64_t* free_bytes, uint64_t* total_bytes) {
  absl::Status status;
  Device* device = Runtime::Get().GetDevice(index, &status);
  if (device == nullptr) return 0;
  DeviceAllocator& allocator = *device->allocator;
  const Bytes total = std::min(allocator.cap(), device->card_total);
  Bytes free = std::min(allocator.FreeWithoutEvicting(), total);
  // Others may have taken what the cap leaves.
  if (const absl::StatusOr<DeviceMemory> card = allocator.driver().MemoryInfo(device->index); card.ok()) {
    free = std::min(free, card->free + allocator.Cached());
  }
  *total_bytes = total.count();
  *free_bytes = free.count();
  return 1;
}

uint64_t weir_largest_free(int32_t index) {
  Device* device = Runtime::Get().Find(index);
  return device == nullptr ? 0 : std::min(device->allocator->LargestFree(), device->card_total).count();
}

int32_t weir_set_cap(int32_t index, uint64_t bytes, WeirError* error) {
  absl::Status status;
  Device* device = Runtime::Get().GetDevice(index, &status);
  if (device != nullptr) status = SetCap(*device, Bytes(bytes), Pager::Lowering::kNowOrNot);
  return status.ok() ? WEIR_OK : Fail(error, status);
}

int32_t weir_set_fraction(int32_t index, double fraction, WeirError* error) {
  absl::Status status;
  Device* device = Runtime::Get().GetDevice(index, &status);
  if (device == nullptr) return Fail(error, status);
  const Bytes share(static_cast<uint64_t>(static_cast<double>(device->card_total.count()) * fraction));
  const Bytes cap =
      fraction < 1 ? std::min(std::max(share, kPageBytes), device->first_cap) : device->first_cap;
  status = SetCap(*device, cap, Pager::Lowering::kOnceItCan);
  // As with torch's own allocator, a job learns of it when it allocates.
  if (absl::IsResourceExhausted(status)) Log(LogLevel::kWarn, status.message());
  return status.ok() || absl::IsResourceExhausted(status) ? WEIR_OK : Fail(error, status);
}

int32_t weir_add_peer(int32_t index, int32_t peer, WeirError* error) {
  absl::Status status;
  Device* device = Runtime::Get().GetDevice(index, &status);
  if (device != nullptr) status = device->allocator->AddPeer(DeviceIndex{peer});
  return status.ok() ? WEIR_OK : Fail(error, status);
}

void weir_empty_cache(int32_t index) {
  if (Device* device = Runtime::Get().Find(index)) {
    device->allocator->EmptyCache();
    device->pager->Trim();
  }
}

void weir_log(int32_t level, const char* text) { Log(static_cast<LogLevel>(level), text); }
void weir_exit(void) {
  for (int i = 0; i < Runtime::kMaxDevices; ++i) RecordPeaks(i);
  trace::Stop();
  Runtime::Get().LogExit();
}

}  // extern "C"
