// Device allocations (cudaMalloc, cuMemAlloc), pinned and registered host memory. Any thread. Bytes; sizes are what the
// caller asked for.
#ifndef WEIR_EMULATED_GPU_DEVICE_MEMORY_H_
#define WEIR_EMULATED_GPU_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

struct Pool;

// On the current device. OUT_OF_MEMORY beyond its VRAM; size 0 gives address 0.
Status AllocateDevice(uintptr_t* address, size_t size);
// Unknown and twice freed addresses are reported and give INVALID_VALUE. Address 0 is fine.
Status FreeDevice(uintptr_t address);

// Pinned host memory; costs nothing until it is touched. INVALID_VALUE for a size of 0, OUT_OF_MEMORY beyond the host's RAM
// (host_ram.h).
Status AllocatePinned(void** address, size_t size);
Status FreePinned(void* address);
Status RegisterHost(void* address, size_t size);
Status UnregisterHost(void* address);

enum class Where { kPageable, kPinned, kRegistered, kDevice };
struct Placement {
  Where where = Where::kPageable;
  uintptr_t begin = 0;  // of the allocation or mapping
  size_t size = 0;
  int device = 0;  // on which it is; of host memory, that was current when it was pinned
};
// Where one address lies. Device addresses that are not mapped count as pageable: cudaMemoryTypeUnregistered.
Placement Locate(uintptr_t address);

// For pools.cc: addresses with real memory, 0 when there is none; and what a pool hands out of it, which then is memory that
// may be touched.
uintptr_t NewUsableRange(size_t size);
void ReturnUsableRange(uintptr_t begin, size_t size);
void BlockAdded(uintptr_t begin, size_t size, int device, const Pool* pool);
void BlockRemoved(uintptr_t begin);

// Memory of a __device__ variable on the current device, made at the first question; outside the VRAM count (it is part
// of the context).
uintptr_t VariableAddress(const void* host, size_t* size);

// Whether a kernel of `device` may read this device address; then `range` is the allocation or mapping around it.
bool IsTouchable(uintptr_t address, int device, Placement* range);

// CUDA_SUCCESS when [address, address + size) is device memory that kernels of `device` may touch so, for a copy some
// device; otherwise a report that names `what`, and ILLEGAL_ADDRESS. Host addresses are not looked at.
enum class Touch { kRead, kWrite };
inline constexpr int kSomeDevice = -1;
Status CheckTouch(uintptr_t address, size_t size, const char* what, Touch touch, int device);

}  // namespace weir::emulated

#endif
