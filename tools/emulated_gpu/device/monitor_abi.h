// The emulated cards for libnvidia-ml.so.1 beside this library: functions that libcuda.so.1 exports. Plain C. Any thread; they
// work before the first use of a device and start none. Devices are physical: CUDA_VISIBLE_DEVICES does not number them.
#ifndef WEIR_EMULATED_GPU_DEVICE_MONITOR_ABI_H_
#define WEIR_EMULATED_GPU_DEVICE_MONITOR_ABI_H_

#include <stdint.h>

struct WeirEmulatedCard {
  char name[96];           // as the driver prints it
  unsigned char uuid[16];  // as cuDeviceGetUuid gives it
  unsigned bus;            // of its PCI address
  uint64_t total, used;    // bytes; by all processes
  int major, minor;        // compute capability
  unsigned multiprocessors, clock_mhz, memory_clock_mhz, memory_bus_bits;
  // Share of the virtual time in which the SMs were busy for any process: since the last window of a tenth of a second that
  // a question ended, and for the first of all since the start. Per cent.
  unsigned busy_percent;
  int peers;  // 1: other cards reach its memory
};
struct WeirEmulatedProcess {
  int pid;
  uint64_t bytes;
};

// `weir_emulated_cards`: how many there are; 0 when WEIR_GPU means none.
typedef int (*WeirEmulatedCards)(void);
// `weir_emulated_card`: 0 if there is no such card.
typedef int (*WeirEmulatedReadCard)(int index, struct WeirEmulatedCard* card);
// `weir_emulated_processes`: how many have a context on the card; the first `room` of them are written.
typedef int (*WeirEmulatedReadProcesses)(int index, struct WeirEmulatedProcess* list, int room);

#endif
