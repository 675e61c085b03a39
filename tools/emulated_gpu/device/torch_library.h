// Finds and installs what the emulator needs inside torch: CPU versions of the CUDA ops (kernels cpu), or
// the observer of ops (kernels none).
#ifndef WEIR_EMULATED_GPU_DEVICE_TORCH_LIBRARY_H_
#define WEIR_EMULATED_GPU_DEVICE_TORCH_LIBRARY_H_

namespace weir::emulated {

// Called at every device count; acts once, when torch is in the process. Makes no CUDA call.
void LoadTorchLibrary();

}  // namespace weir::emulated

#endif
