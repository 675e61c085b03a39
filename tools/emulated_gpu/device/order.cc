#include "tools/emulated_gpu/device/order.h"

#include <algorithm>
#include <utility>

#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/streams.h"
#include "tools/emulated_gpu/device/work_queue.h"

namespace weir::emulated {
namespace {

uint32_t TakeIndex(OrderState& order) {
  for (uint32_t& index : order.retired) {
    if (order.newest[index] > At(order.completed, index)) continue;
    const uint32_t taken = index;
    index = order.retired.back();
    order.retired.pop_back();
    return taken;
  }
  order.newest.push_back(0);
  return static_cast<uint32_t>(order.newest.size() - 1);
}

// The legacy stream comes after all blocking streams of its device.
void JoinBlocking(OrderState& order, Stream& legacy) {
  for (const Stream* other : order.live) {
    if (other->device == legacy.device && IsBlocking(*other)) legacy.past.Join(other->past);
  }
  const auto joined = [&legacy](const Departed& other) {
    if (other.device != legacy.device || !other.blocking) return false;
    legacy.past.Join(other.past);
    return true;
  };
  order.departed.erase(std::remove_if(order.departed.begin(), order.departed.end(), joined),
                       order.departed.end());
}

void ReportConflict(const OrderState& order, const Access& access, uint64_t work,
                    const PlaceAccess& earlier) {
  const bool write = access.use == Use::kWrite;
  Report("%s of 0x%lx + %zu by %s is not ordered after the %s by %s | at %s | earlier at %s",
         write ? "write" : "read", access.begin, access.size, order.log.Describe(work).c_str(),
         earlier.write ? "write" : "read", order.log.Describe(earlier.work).c_str(),
         order.log.DescribeStack(work).c_str(), order.log.DescribeStack(earlier.work).c_str());
}

// The checks of one work. The first conflict is reported, more of the same work are the same mistake.
class Check {
 public:
  Check(OrderState& order, const Past& past, uint64_t work) : order_(order), past_(past), work_(work) {}

  void Add(const Access& access) {
    if (access.size == 0 || access.rows == 0) return;
    const size_t span = access.rows == 1 ? access.size : access.pitch * (access.rows - 1) + access.size;
    order_.regions.ForEach(access.begin, access.begin + span, [&](Region& region) {
      AddUse(region, {past_.index, past_.tick, work_}, order_.completed);
      if (access.use == Use::kUnknown) return;
      const Place base = region.place - region.begin;  // place = address + base
      const uintptr_t begin = std::max(access.begin, region.begin);
      if (base != base_ || begin != end_) Flush(access);
      if (begin_ == end_) begin_ = begin;
      base_ = base;
      end_ = std::min(access.begin + span, region.end());
    });
    Flush(access);
  }

 private:
  // Neighbouring mappings of neighbouring frames are one range.
  void Flush(const Access& access) {
    if (begin_ < end_) {
      PlaceAccess added{past_.index, past_.tick, work_, access.use == Use::kWrite, {}}, conflict;
      if (access.rows > 1 && access.pitch != access.size) {
        added.pattern = {access.begin + base_, access.pitch, access.size};
      }
      const bool found =
          order_.places.Add(begin_ + base_, end_ + base_, added, past_, order_.completed, &conflict);
      if (found && !reported_) ReportConflict(order_, access, work_, conflict);
      reported_ = reported_ || found;
    }
    begin_ = end_ = 0;
  }

  OrderState& order_;
  const Past& past_;
  const uint64_t work_;
  bool reported_ = false;
  uintptr_t begin_ = 0, end_ = 0;
  Place base_ = 0;
};

// One report is enough for one call.
bool ReportInFlight(const OrderState& order, const Region& region, const char* call) {
  for (const RegionUse& use : region.uses) {
    if (use.tick <= At(order.completed, use.index)) continue;
    Report("%s of 0x%lx + %zu, which is in flight: %s is not known to be complete | at %s | earlier at %s",
           call, region.begin, region.size, order.log.Describe(use.work).c_str(),
           NameFrames(TakeStack()).c_str(), order.log.DescribeStack(use.work).c_str());
    return true;
  }
  return false;
}

void ReportRegionsInFlight(OrderState& order, uintptr_t begin, size_t size, const char* call) {
  bool reported = !Settings().checks;
  order.regions.ForEach(begin, begin + size, [&](const Region& region) {
    reported = reported || ReportInFlight(order, region, call);
  });
}

}  // namespace

OrderState& Order() {
  static auto* order = new OrderState;
  return *order;
}

bool IsBlocking(const Stream& stream) {
  return !IsLegacy(stream) && (stream.flags & CU_STREAM_NON_BLOCKING) == 0;
}

Past StepLocked(Stream& stream, const Past* after) {
  OrderState& order = Order();
  if (stream.past.index == kNoIndex) {
    stream.past.index = TakeIndex(order);
    order.live.push_back(&stream);
  }
  if (IsLegacy(stream)) {
    JoinBlocking(order, stream);
  } else if (IsBlocking(stream)) {
    stream.past.Join(LegacyStream(stream.device).past);
  }
  if (after != nullptr) stream.past.Join(*after);
  stream.past.tick = ++order.newest[stream.past.index];
  HostReaches(stream.host_time);
  stream.host_time = HostNow();
  return stream.past;
}

Past NoteWorkLocked(Stream& stream, const char* what, const Access* accesses, size_t count,
                    const Demand* demand) {
  OrderState& order = Order();
  StepLocked(stream);
  if (demand != nullptr) {
    stream.queue.MakeRoom();
    ProlongLocked(stream, *demand);
    stream.queue.Add(stream.past.done);
  }
  const Past past = stream.past;
  if (!Settings().checks) return past;
  Check check(order, past, order.log.Add(what, CurrentOp(), stream.id));
  for (size_t i = 0; i < count; ++i) check.Add(accesses[i]);
  return past;
}

NotedWork NoteWork(Stream& stream, const char* what, const Access* accesses, size_t count,
                   const Demand* demand) {
  std::lock_guard<std::mutex> lock(Order().mutex);
  Past past = NoteWorkLocked(stream, what, accesses, count, demand);
  return {std::move(past), Order().log.newest()};
}

void NoteLateAccess(const NotedWork& work, const Access& access) {
  OrderState& order = Order();
  std::lock_guard<std::mutex> lock(order.mutex);
  if (!Settings().checks || IsCompleteLocked(work.past)) return;
  Check(order, work.past, work.number).Add(access);
}

void ProlongLocked(Stream& stream, const Demand& demand) {
  stream.past.done = ScheduleLocked(demand, stream.device, stream.past.done);
}

bool IsWrittenLocked(uintptr_t begin, size_t size) {
  const OrderState& order = Order();
  return order.places.HasWriter(begin, begin + size, order.completed);  // host places are addresses
}

bool IsCompleteLocked(const Past& past) {
  return past.index == kNoIndex || past.tick <= At(Order().completed, past.index);
}

void CompleteLocked(const Past& past) {
  OrderState& order = Order();
  if (past.index != kNoIndex) {
    if (IsCompleteLocked(past)) return;
    Raise(order.completed, past.index, past.tick);
  }
  if (past.others == nullptr) return;
  for (uint32_t i = 0; i < past.others->size(); ++i) Raise(order.completed, i, (*past.others)[i]);
}

Past EverythingLocked() {
  return {kNoIndex, 0, LatestDoneLocked(), std::make_shared<const Ticks>(Order().newest)};
}

// Of its streams' pasts, so that work of other devices that they came after is in it.
Past EverythingLocked(int device) {
  if (DeviceCount() == 1) return EverythingLocked();
  const OrderState& order = Order();
  Past past{kNoIndex, 0, LatestDoneLocked(device), nullptr};
  for (const Stream* stream : order.live) {
    if (stream->device == device) past.Join(stream->past);
  }
  for (const Departed& other : order.departed) {
    if (other.device == device) past.Join(other.past);
  }
  return past;
}

void RetireLocked(Stream& stream) {
  OrderState& order = Order();
  if (stream.past.index == kNoIndex) return;
  order.live.erase(std::find(order.live.begin(), order.live.end(), &stream));
  const auto complete = [](const Departed& other) { return IsCompleteLocked(other.past); };
  order.departed.erase(std::remove_if(order.departed.begin(), order.departed.end(), complete),
                       order.departed.end());
  if (!IsCompleteLocked(stream.past))
    order.departed.push_back({stream.past, stream.device, IsBlocking(stream)});
  order.retired.push_back(stream.past.index);
  stream.past = {};
}

void RegionAdded(uintptr_t begin, size_t size, Place place, bool host) {
  std::lock_guard<std::mutex> lock(Order().mutex);
  Order().regions.Add(begin, size, place, host);
}

void FinishUsers(uintptr_t begin, size_t size) {
  OrderState& order = Order();
  std::lock_guard<std::mutex> lock(order.mutex);
  if (QueuedLocked() == 0) return;
  order.regions.ForEach(begin, begin + size, [&](const Region& region) {
    for (const RegionUse& use : region.uses) TryRunThroughLocked(use.index, use.tick);
  });
}

void RegionsChange(uintptr_t begin, size_t size, const char* call) {
  std::lock_guard<std::mutex> lock(Order().mutex);
  ReportRegionsInFlight(Order(), begin, size, call);
}

void RegionsRemoved(uintptr_t begin, size_t size, const char* call) {
  OrderState& order = Order();
  std::lock_guard<std::mutex> lock(order.mutex);
  ReportRegionsInFlight(order, begin, size, call);
  order.regions.ForEach(begin, begin + size, [&](const Region& region) {
    if (region.place == region.begin) order.places.Forget(region.place, region.place + region.size);
  });
  order.regions.Remove(begin, begin + size);
}

void PlaceRemoved(Place begin, size_t size) {
  std::lock_guard<std::mutex> lock(Order().mutex);
  Order().places.Forget(begin, begin + size);
}

}  // namespace weir::emulated
