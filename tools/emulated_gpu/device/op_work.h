// Between the ops of torch and the work they enqueue. Any thread.
//
// Kernels cpu: an op is one work, with the bytes of its tensors. Kernels none: ops are on a stack per thread while they
// run, and the pointers of a launch are looked up in it, innermost op first: a pointer into a tensor stands for the bytes of
// that tensor, used as the op's schema says. Pointers that no op has (memory that the op allocated, workspaces) are
// in flight but compared with nothing; those that turn out to be results of the op count as written when it ends.
#ifndef WEIR_EMULATED_GPU_DEVICE_OP_WORK_H_
#define WEIR_EMULATED_GPU_DEVICE_OP_WORK_H_

#include <cstddef>
#include <cstdint>

#include "tools/emulated_gpu/device/status.h"
#include "tools/emulated_gpu/device/torch_abi.h"

namespace weir::emulated {

struct Stream;

// The `run_now`, `begin_op` and `end_op` of torch_abi.h.
void RunOpNow(void* stream, const char* what, const WeirEmulatedAccess* accesses, size_t count);
void BeginOp(const char* name, const WeirEmulatedAccess* accesses, size_t count);
void EndOp(const WeirEmulatedAccess* results, size_t count);

// A launch of kernel `what` (it lives as long as the process) with these pointers among its arguments. Values that are no
// addresses of device or pinned memory do no harm.
void NoteLaunch(Stream& stream, const char* what, const uintptr_t* pointers, size_t count);

// Whether the address lies in a tensor that an op of this thread was given (kernels none).
bool InTensorOfOp(uintptr_t address);

}  // namespace weir::emulated

#endif
