// Which physical bytes of the emulated cards and of the RAM of their host are taken: by this process, and by the other processes of the same `weir run`,
// which share its cards. Any thread. Devices are physical: CUDA_VISIBLE_DEVICES does not number them. Bytes.
//
// WEIR_EMULATED_SHARED, set by `weir run`, names the shared memory, which holds a slot per process (process_table.h). A slot
// whose process is gone counts no more. Without the variable a process has the cards to itself.
#ifndef WEIR_EMULATED_GPU_DEVICE_ACCOUNTING_H_
#define WEIR_EMULATED_GPU_DEVICE_ACCOUNTING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/emulated_gpu/device/virtual_clock.h"

namespace weir::emulated {

inline constexpr int kMostDevices = 16;

// This process uses the device from now on and is listed. Later calls do nothing.
void JoinProcesses();
// At the exit: it is listed no more.
void LeaveProcesses();
// It has a context on `device`, or has it no more.
void NoteContext(int device, bool active);

// Taken only if the total of all processes stays within the device's VRAM (overcommit.h has an exception).
bool TakeDeviceBytes(int device, size_t bytes);
void ReturnDeviceBytes(int device, size_t bytes);
size_t UsedDeviceBytes(int device);  // by all processes, with their contexts
size_t HeldDeviceBytes(int device);  // by this one
size_t PeakDeviceBytes(int device);  // the most that this one held
size_t PeakCardBytes(int device);    // the most that all held when this one took more, contexts included

// Pinned host memory: taken only if the total of all processes stays within `ram`.
bool TakeHostBytes(size_t bytes, size_t ram);
void ReturnHostBytes(size_t bytes);

// What the SMs of `device` did for this process: busy for `busy` until `now`, in the virtual time of this process.
void NoteBusy(int device, Nanos busy, Nanos now);

struct ProcessUse {
  int pid;
  uint64_t number;  // of its start, so that a pid that is used again is another process
  size_t bytes;
  Nanos busy, now;
};
// The processes with a context on `device`.
std::vector<ProcessUse> ProcessesOn(int device);

}  // namespace weir::emulated

#endif
