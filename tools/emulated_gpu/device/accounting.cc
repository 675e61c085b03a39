#include "tools/emulated_gpu/device/accounting.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "tools/emulated_gpu/device/fault_points.h"
#include "tools/emulated_gpu/device/overcommit.h"
#include "tools/emulated_gpu/device/process_table.h"
#include "tools/emulated_gpu/device/profile.h"

namespace weir::emulated {
namespace {

std::mutex mutex;  // one thread of this process at a time, as the file's lock does for processes
std::atomic<ProcessSlot*> mine{nullptr};  // set once, under mutex
std::atomic<size_t> peak_bytes[kMostDevices], card_peak_bytes[kMostDevices];

// Under the mutex.
class TableLock {
 public:
  TableLock() : lock_(mutex) { Table().Lock(); }
  ~TableLock() { Table().Unlock(); }

 private:
  std::lock_guard<std::mutex> lock_;
};

// This process's, joined before the lock was taken.
ProcessSlot& MineLocked() { return *mine.load(std::memory_order_relaxed); }

size_t ContextsOf(const ProcessSlot& slot, int device) {
  return (slot.contexts & 1u << device) != 0 ? Settings().context_bytes : 0;
}

// Of what `held` tells of a process.
template <typename Held>
size_t SumOfAllLocked(const Held& held) {
  const ProcessSlot* own = mine.load(std::memory_order_relaxed);
  size_t sum = 0;
  bool counted = own == nullptr;  // a process that only looks
  for (const ProcessSlot& slot : Table()) {
    if (slot.pid != 0) sum += held(slot);
    counted = counted || &slot == own;
  }
  return counted ? sum : sum + held(*own);  // it lies outside the table, as after the exit's line
}

// With what the contexts take.
size_t SumLocked(int device) {
  return SumOfAllLocked(
      [device](const ProcessSlot& slot) { return slot.used[device].load() + ContextsOf(slot, device); });
}

}  // namespace

void JoinProcesses() {
  if (mine.load(std::memory_order_acquire) != nullptr) return;
  const TableLock lock;
  if (mine.load(std::memory_order_acquire) == nullptr)
    mine.store(Table().TakeSlotLocked(), std::memory_order_release);
}

void LeaveProcesses() {
  const TableLock lock;
  ProcessSlot* slot = mine.load(std::memory_order_acquire);
  if (slot != nullptr) mine.store(Table().LeaveLocked(slot), std::memory_order_release);
}

void NoteContext(int device, bool active) {
  JoinProcesses();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto bit = 1u << device;
  active ? MineLocked().contexts.fetch_or(bit) : MineLocked().contexts.fetch_and(~bit);
}

bool TakeDeviceBytes(int device, size_t bytes) {
  JoinProcesses();
  const size_t room = std::min(Settings().vram_bytes, DeviceCapacity());
  const TableLock lock;
  const auto fits = [&] { return bytes <= room && SumLocked(device) <= room - bytes; };
  if (!fits()) {
    Table().DropDeadLocked();
    if (!fits() && !GrantBeyondCard(bytes)) return false;
  }
  const size_t used = MineLocked().used[device].fetch_add(bytes) + bytes;
  if (peak_bytes[device].load() < used) peak_bytes[device].store(used);  // under the lock
  const size_t all = SumLocked(device);
  if (card_peak_bytes[device].load() < all) card_peak_bytes[device].store(all);
  return true;
}

void ReturnDeviceBytes(int device, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  MineLocked().used[device].fetch_sub(bytes);
}

size_t UsedDeviceBytes(int device) {
  const TableLock lock;
  Table().DropDeadLocked();
  return SumLocked(device);
}

size_t HeldDeviceBytes(int device) {
  JoinProcesses();
  const std::lock_guard<std::mutex> lock(mutex);
  return MineLocked().used[device];
}

size_t PeakDeviceBytes(int device) { return peak_bytes[device]; }
size_t PeakCardBytes(int device) { return card_peak_bytes[device]; }

bool TakeHostBytes(size_t bytes, size_t ram) {
  JoinProcesses();
  const TableLock lock;
  const auto fits = [&] {
    return bytes <= ram &&
           SumOfAllLocked([](const ProcessSlot& slot) { return slot.pinned.load(); }) <= ram - bytes;
  };
  if (!fits()) {
    Table().DropDeadLocked();
    if (!fits()) return false;
  }
  MineLocked().pinned.fetch_add(bytes);
  return true;
}

void ReturnHostBytes(size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  MineLocked().pinned.fetch_sub(bytes);
}

void NoteBusy(int device, Nanos busy, Nanos now) {
  ProcessSlot* slot = mine.load(std::memory_order_acquire);
  if (slot == nullptr) return;
  slot->busy[device].store(busy, std::memory_order_relaxed);
  slot->now.store(now, std::memory_order_relaxed);
}

std::vector<ProcessUse> ProcessesOn(int device) {
  std::vector<ProcessUse> found;
  const TableLock lock;
  Table().DropDeadLocked();
  for (const ProcessSlot& slot : Table()) {
    if (slot.pid == 0 || (slot.contexts & 1u << device) == 0) continue;
    found.push_back({slot.pid, slot.start, slot.used[device], slot.busy[device], slot.now});
  }
  return found;
}

}  // namespace weir::emulated
