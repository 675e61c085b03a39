// The table of processes that share the emulated cards: in the shared memory that WEIR_EMULATED_SHARED names, else in this
// process's own. For accounting.cc, which serialises the threads of this process.
//
// The memory is a file of the user's own in /dev/shm, with a random name that `weir run` chose. Its first process makes it, the
// last one removes it, and one that a killed process left is removed when the next is made.
#ifndef WEIR_EMULATED_GPU_DEVICE_PROCESS_TABLE_H_
#define WEIR_EMULATED_GPU_DEVICE_PROCESS_TABLE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "tools/emulated_gpu/device/accounting.h"

namespace weir::emulated {

// All zeros: free. The process that owns a slot alone writes to it, but for the one that finds it dead.
struct ProcessSlot {
  std::atomic<int> pid;
  std::atomic<uint32_t> contexts;  // a bit per device
  std::atomic<uint64_t>
      start;  // of the process, in ticks since the machine's start: tells a pid that is used again
  std::atomic<size_t> used[kMostDevices];
  std::atomic<size_t> pinned;  // of the host
  std::atomic<Nanos> busy[kMostDevices];
  std::atomic<Nanos> now;
};

class ProcessTable {
 public:
  // Between these, other processes do not begin or change a total. The system unlocks for a process that dies.
  void Lock();
  void Unlock();

  ProcessSlot* begin() { return slots_; }
  ProcessSlot* end() { return slots_ + count_; }

  // A slot for this process, its own if it had one before it ran another program. When all are taken, one outside the table.
  ProcessSlot* TakeSlotLocked();
  // `slot` is free again. Returns what it held, in one outside the table.
  ProcessSlot* LeaveLocked(ProcessSlot* slot);
  // Frees the slots of processes that are gone.
  void DropDeadLocked();

 private:
  friend ProcessTable& Table();
  ProcessTable();
  bool Open();

  ProcessSlot* slots_;
  int count_ = 1;
  int file_ = -1;  // -1: no other process
  std::string path_;
};

// Opened at the first call.
ProcessTable& Table();

}  // namespace weir::emulated

#endif
