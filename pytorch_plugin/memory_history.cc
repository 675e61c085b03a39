#include "pytorch_plugin/memory_history.h"

#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/ApproximateClock.h>

#include <functional>
#include <mutex>
#include <set>

#include "pytorch_plugin/core_abi_events.h"
#include "pytorch_plugin/device_history.h"
#include "pytorch_plugin/torch_version_history.h"
#include "pytorch_plugin/trace_trackers.h"

namespace weir::plugin {
namespace {

// Guarded by `mutex`, but for what is atomic. The core's device lock is taken under it, and the trackers' leaf.
struct History {
  std::mutex mutex;
  std::atomic<CreateContextFn> create{nullptr};
  std::atomic<RecordContext> when{RecordContext::NEVER};
  std::atomic<bool> on{false};
  std::set<TraceEntry::Action> skipped;
  size_t max_entries = 1;
  std::vector<DeviceHistory> devices;
  TraceRing<AnnotationEntry> annotations;
};

History& Shared() {
  static auto* history = new History;  // never destroyed: blocks are freed while the process exits
  return *history;
}

// What is taken out of the history while its lock is held, to die after it.
struct Dropped {
  std::vector<TraceEntry> entries;
  std::vector<Context> contexts;
};

void AddLocked(History& history, DeviceHistory& device, TraceEntry entry, bool for_trackers,
               Dropped* dropped) {
  if (for_trackers && HasTrackers()) QueueForTrackers(entry);
  if (!history.on.load() || history.skipped.contains(entry.action_)) return;
  device.ring.Add(std::move(entry), &dropped->entries);
}

struct Taking {
  History* history;
  DeviceHistory* device;
  Dropped* dropped;
};

// One event of the core. No exception may reach the caller, which is C.
void OnEvent(void* context, const WeirEvent* event) noexcept {
  const Taking& taking = *static_cast<Taking*>(context);
  try {
    const bool stacks = taking.history->when.load() >= RecordContext::ALLOC;
    for (EventEntry& each : taking.device->Take(*event, stacks, &taking.dropped->contexts)) {
      AddLocked(*taking.history, *taking.device, std::move(each.entry), each.for_trackers, taking.dropped);
    }
  } catch (const std::exception& error) {
    weir_log(1, error.what());
  }
}

void TakeEventsLocked(History& history, Dropped* dropped) {
  for (size_t i = 0; i < history.devices.size(); ++i) {
    Taking taking{&history, &history.devices[i], dropped};
    weir_take_events(static_cast<int>(i), &OnEvent, &taking);
  }
}

// An entry that the core knows nothing of, behind all that has happened.
void AddOwn(int device, TraceEntry::Action action, uint64_t address, uint64_t bytes, void* stream,
            const Cause& cause) {
  if (!Watched()) return;
  History& history = Shared();
  {
    Dropped dropped;
    std::lock_guard<std::mutex> lock(history.mutex);
    TakeEventsLocked(history, &dropped);
    if (static_cast<size_t>(device) >= history.devices.size()) return;
    const bool stacks = history.when.load() >= RecordContext::ALLOC;
    TraceEntry entry(action, static_cast<c10::DeviceIndex>(device), address, bytes, stream,
                     c10::MempoolId_t{0, 0}, c10::getApproximateTime(), stacks ? cause.context : nullptr,
                     cause.compile_context, cause.user_metadata);
    AddLocked(history, history.devices[static_cast<size_t>(device)], std::move(entry), true, &dropped);
  }
  TellTrackers();
}

Cause CauseNow(RecordContext level) {
  Cause cause;
  const CreateContextFn create = Shared().create.load();
  if (create != nullptr && Shared().when.load() >= level) cause.context = create();
  cause.compile_context = CompileContext();
  cause.user_metadata = UserMetadata();
  return cause;
}

void UpdateWatchLocked(History& history) {
  while (history.devices.size() < static_cast<size_t>(c10::cuda::device_count())) {
    history.devices.emplace_back().ring.SetLimit(history.max_entries, nullptr);
  }
  const bool watch = history.on.load() || HasTrackers();
  weir_watch(watch ? 1 : 0);
  internal::watched.store(watch, std::memory_order_relaxed);
}

std::function<int64_t(c10::approx_time_t)> MicrosecondsOfClock() {
  static auto* clock = new c10::ApproximateClockToUnixTimeConverter;
  return [convert = clock->makeConverter()](c10::approx_time_t time) { return convert(time) / 1000; };
}

}  // namespace

void WatchedCall::Begin(RecordContext level) noexcept {
  cause_.emplace();
  try {
    *cause_ = CauseNow(level);
  } catch (const std::exception& error) {  // told without a stack
    weir_log(1, error.what());
  }
  before_ = weir_set_cause(&*cause_);
}

void WatchedCall::End() noexcept {
  weir_set_cause(before_);
  TakeEvents();  // after which nobody refers to the cause any more
}

void WatchedCall::OutOfMemory(int device, uint64_t requested, uint64_t free, void* stream) {
  if (cause_.has_value()) AddOwn(device, TraceEntry::OOM, free, requested, stream, *cause_);
}

void TakeEvents() noexcept {
  try {
    Dropped dropped;
    std::lock_guard<std::mutex> lock(Shared().mutex);
    TakeEventsLocked(Shared(), &dropped);
  } catch (const std::exception& error) {
    weir_log(1, error.what());
  }
  TellTrackers();
}

void RecordHistory(bool enabled, CreateContextFn create, size_t max_entries, RecordContext when, bool clear,
                   const std::vector<std::string>& skip_actions) {
  TORCH_CHECK(when == RecordContext::NEVER || create != nullptr, "a context is wanted, but nothing makes it");
  std::set<TraceEntry::Action> skipped;
  for (const std::string& action : skip_actions) {
    skipped.insert(c10::CachingDeviceAllocator::parseTraceEntryAction(action));
  }
  MicrosecondsOfClock();  // from now on the clocks are compared
  History& history = Shared();
  Dropped dropped;
  std::vector<AnnotationEntry> notes;
  std::lock_guard<std::mutex> lock(history.mutex);
  TakeEventsLocked(history, &dropped);
  history.create.store(enabled ? create : nullptr);
  history.when.store(enabled ? when : RecordContext::NEVER);
  history.on.store(enabled);
  history.skipped = std::move(skipped);
  history.max_entries = max_entries;
  UpdateWatchLocked(history);
  for (DeviceHistory& device : history.devices) {
    device.ring.SetLimit(max_entries, &dropped.entries);
    if (!enabled || clear) device.ring.Clear(&dropped.entries);
  }
  history.annotations.SetLimit(max_entries, &notes);
  if (!enabled || clear) history.annotations.Clear(&notes);
}

bool HistoryIsOn() { return Shared().on.load(std::memory_order_relaxed); }

void RecordAnnotation(const std::vector<std::pair<std::string, std::string>>& pairs) {
  if (!HistoryIsOn()) return;
  c10::DeviceIndex device = 0;
  if (c10::cuda::GetDevice(&device) != cudaSuccess) return;
  AnnotationEntry entry(device, c10::getApproximateTime());
  for (const auto& [name, value] : pairs) entry.recordUserMetadata(name, value);
  std::vector<AnnotationEntry> notes;
  std::lock_guard<std::mutex> lock(Shared().mutex);
  Shared().annotations.Add(std::move(entry), &notes);
}

void AnnotateBlock(const void* address, const std::string& metadata) {
  if (!Watched() || !kAnnotate.has_value()) return;
  Cause cause = CauseNow(RecordContext::ALLOC);
  cause.user_metadata = metadata;
  for (int device = 0; device < c10::cuda::device_count(); ++device) {
    std::optional<LiveBlock> block;
    {
      Dropped dropped;
      std::lock_guard<std::mutex> lock(Shared().mutex);
      TakeEventsLocked(Shared(), &dropped);
      block = Shared().devices[static_cast<size_t>(device)].Find(reinterpret_cast<uintptr_t>(address));
    }
    if (!block.has_value()) continue;
    AddOwn(device, *kAnnotate, reinterpret_cast<uintptr_t>(address), block->bytes, block->stream, cause);
    return;
  }
}

Context ContextOf(const void* address) {
  void* base = nullptr;
  uint64_t bytes = 0;
  if (weir_find_block(address, &base, &bytes) == 0 || base != address) return nullptr;
  if (!Watched()) {  // blocks may have come and gone unseen: forgets them
    for (int device = 0; device < c10::cuda::device_count(); ++device) {
      weir_drop_snapshot(RecordOf(device, /*with_trace=*/false).blocks);
    }
  }
  Dropped dropped;
  std::lock_guard<std::mutex> lock(Shared().mutex);
  TakeEventsLocked(Shared(), &dropped);
  for (const DeviceHistory& device : Shared().devices) {
    const std::optional<LiveBlock> block = device.Find(reinterpret_cast<uintptr_t>(address));
    if (block.has_value()) return block->context;
  }
  return nullptr;
}

void WatchForTrackers() {
  std::lock_guard<std::mutex> lock(Shared().mutex);
  UpdateWatchLocked(Shared());
}

DeviceRecord RecordOf(int index, bool with_trace) {
  DeviceRecord record;
  History& history = Shared();
  {
    Dropped dropped;
    std::lock_guard<std::mutex> lock(history.mutex);
    TakeEventsLocked(history, &dropped);
    record.blocks = weir_take_snapshot(index);
    if (static_cast<size_t>(index) >= history.devices.size()) return record;
    DeviceHistory& device = history.devices[static_cast<size_t>(index)];
    if (record.blocks != nullptr) record.context = device.ContextsOf(*record.blocks, &dropped.contexts);
    if (with_trace) record.trace = device.ring.Copy();
  }
  if (record.trace.empty()) return record;
  const auto microseconds = MicrosecondsOfClock();
  for (TraceEntry& entry : record.trace) entry.time_.t_ = microseconds(entry.time_.approx_t_);
  return record;
}

void RecordSnapshot(int device, uint64_t active) {
  if (Watched())
    AddOwn(device, TraceEntry::SNAPSHOT, 0, active, nullptr,
           Cause{nullptr, CompileContext(), UserMetadata()});
}

std::vector<AnnotationEntry> Annotations() {
  std::vector<AnnotationEntry> entries;
  {
    std::lock_guard<std::mutex> lock(Shared().mutex);
    entries = Shared().annotations.Copy();
  }
  if (entries.empty()) return entries;
  const auto microseconds = MicrosecondsOfClock();
  for (AnnotationEntry& entry : entries) entry.time_.t_ = microseconds(entry.time_.approx_t_);
  return entries;
}

}  // namespace weir::plugin
