// Kernels `none`: the RAM of the emulated host. Pinned memory is address space whose pages stay untouched, so the profile's size
// limits it and not this machine's. With kernels `cpu` the bytes are real and so are the limits. Any thread; takes the lock of
// accounting.cc.
#ifndef WEIR_EMULATED_GPU_DEVICE_HOST_RAM_H_
#define WEIR_EMULATED_GPU_DEVICE_HOST_RAM_H_

#include <cstddef>

namespace weir::emulated {

// Bytes. 0: that of this machine.
size_t HostRam();

// This process pins `size` bytes more, or fewer. False, and nothing is pinned, where it and the other processes of the host
// (accounting.h) would then hold more than HostRam().
bool PinHostBytes(size_t size);
void UnpinHostBytes(size_t size);

}  // namespace weir::emulated

#endif
