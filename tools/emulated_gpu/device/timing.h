// What the virtual clock says of a run: the steps of a training job, and the summary at exit (WEIR_EMULATED_TIMING=1). Any
// thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_TIMING_H_
#define WEIR_EMULATED_GPU_DEVICE_TIMING_H_

namespace weir::emulated {

// The `end_step` of torch_abi.h.
void EndStep(const char* name);

// With WEIR_EMULATED_TIMING=1: some lines on stderr.
void TimingAtExit();

}  // namespace weir::emulated

#endif
