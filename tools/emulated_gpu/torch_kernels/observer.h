// Kernels none: tells the emulator which op runs on each thread and which tensors it has, so that launches can be judged.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_OBSERVER_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_OBSERVER_H_

namespace weir::emulated {

// Once, before CUDA starts; stays for the life of the process (correctness R6).
void ObserveOps();

// Kernels cpu, the same: tells the emulator that an op began, for its time on the host.
void ObserveHostTime();

// Both kinds of kernels, the same: tells the emulator when a step ends, by the ranges of torch's optimizers and those
// that a program names "step".
void ObserveSteps();

}  // namespace weir::emulated

#endif
