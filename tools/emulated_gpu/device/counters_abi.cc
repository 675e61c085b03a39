#include "tools/emulated_gpu/device/counters_abi.h"

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/streams.h"
#include "tools/emulated_gpu/device/vmm.h"
#include "tools/emulated_gpu/device/work_queue.h"

using namespace weir::emulated;

extern "C" __attribute__((visibility("default"))) void weir_emulated_counters(
    WeirEmulatedCounters* counters) {
  const Counters& counted = Counted();
  *counters = {counted.launches,
               counted.copies,
               counted.copied_bytes,
               counted.reports,
               DeviceCount() == 0 ? 0 : HeldDeviceBytes(PhysicalDevice(0)),
               DeviceCount() == 0 ? 0 : PeakDeviceBytes(PhysicalDevice(0)),
               Settings().vram_bytes,
               counted.unchecked_launches,
               LiveStreams(),
               LiveEvents(),
               LiveFrames()};
}

extern "C" __attribute__((visibility("default"))) void weir_emulated_test_kernel(
    void* stream, const char* what, const WeirEmulatedAccess* accesses, size_t count) {
  RunOpNow(stream, what, accesses, count, nullptr);
}

extern "C" __attribute__((visibility("default"))) void weir_emulated_reseed(uint64_t seed) {
  std::lock_guard<std::mutex> lock(Order().mutex);
  ReseedLocked(seed);
}
