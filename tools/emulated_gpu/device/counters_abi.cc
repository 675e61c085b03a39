#include "tools/emulated_gpu/device/counters_abi.h"

#include "tools/emulated_gpu/device/memory.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"

using namespace weir::emulated;

extern "C" __attribute__((visibility("default"))) void weir_emulated_counters(
    WeirEmulatedCounters* counters) {
  const Counters& counted = Counted();
  *counters = {counted.launches,  counted.copies,    counted.copied_bytes,  counted.reports,
               UsedDeviceBytes(), PeakDeviceBytes(), Settings().vram_bytes, counted.unchecked_launches};
}
