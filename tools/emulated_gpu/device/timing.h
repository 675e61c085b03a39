// What the virtual clock says of a run: the steps of a training job, and the summary at exit (WEIR_EMULATED_TIMING=1). Any
// thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_TIMING_H_
#define WEIR_EMULATED_GPU_DEVICE_TIMING_H_

#include <cstddef>

#include "tools/emulated_gpu/device/virtual_clock.h"

namespace weir::emulated {

// The `end_step` of torch_abi.h.
void EndStep(const char* name);

// How many steps were seen, the first not counted, and the median of their times; 0 if there was none.
struct StepTimes {
  size_t count = 0;
  Nanos median = 0;
};
StepTimes TimesOfSteps();

// When all that was enqueued until now is done.
Nanos TimeInAll();

// With WEIR_EMULATED_TIMING=1: some lines on stderr.
void TimingAtExit();

}  // namespace weir::emulated

#endif
