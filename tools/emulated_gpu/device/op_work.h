// Between the ops of torch and the work they enqueue. Any thread.
//
// Kernels cpu: an op is one work, with the bytes of its tensors. Kernels none: ops are on a stack per thread while they
// run, and the pointers of a launch are looked up in it, innermost op first: a pointer into a tensor stands for the bytes of
// that tensor, used as the op's schema says. Pointers that no op has (memory that the op allocated, workspaces) are
// in flight but compared with nothing; those that turn out to be results of the op count as written when it ends.
//
// What an op's kernels write is not known any more (known_bytes.h): the tensors that it writes and, when it ends, its results,
// unless it computed them.
//
// The clock: each launch takes what every kernel takes, and the work of the op, which is known when it ends, comes after
// its last launch. An op that a library call does has no work of its own.
#ifndef WEIR_EMULATED_GPU_DEVICE_OP_WORK_H_
#define WEIR_EMULATED_GPU_DEVICE_OP_WORK_H_

#include <cstddef>
#include <cstdint>

#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/status.h"
#include "tools/emulated_gpu/device/torch_abi.h"
#include "tools/emulated_gpu/device/value_reads.h"

namespace weir::emulated {

struct GraphNode;
struct Stream;

// The functions of torch_abi.h.
int RunOpNow(void* stream, const char* what, const WeirEmulatedAccess* accesses, size_t count,
             const WeirEmulatedWork* work);
void SetOpOnCpu(const char* name);
void BeginOp(const char* name, const WeirEmulatedAccess* accesses, size_t count, const WeirEmulatedWork* work,
             int carried);
void EndOp(const WeirEmulatedAccess* results, size_t count, double moves);
void ChargeOp(int nested);
int AreKnown(const WeirEmulatedAccess* accesses, size_t count);
void OpComputed(const char* name, const WeirEmulatedAccess* accesses, size_t count);
void SettleStream(void* stream);

// A launch of kernel `what` (it lives as long as the process) with these pointers among its arguments. Values that are no
// addresses of device or pinned memory do no harm.
// Where the stream captures, this and the next two make a node of a graph, and give it; else null.
GraphNode* NoteLaunch(Stream& stream, const char* what, const uintptr_t* pointers, size_t count);

// A call of a library that is a kernel with this work, whatever the op around it has.
GraphNode* NoteLibraryLaunch(Stream& stream, const char* what, const Access* accesses, size_t count,
                             const WeirEmulatedWork& work);

// A call of a library that does the work of the op around it, with this memory.
struct Launched {
  GraphNode* node = nullptr;
  NotedWork work;  // where nothing captures
};
Launched NoteLaunchOfOp(Stream& stream, const char* what, const Access* accesses, size_t count);

// A launch whose arguments nobody can read: it may write all that the ops around it write and return.
void NoteBlindLaunch();

// Gives the ops of this thread that have launched their time, before anything else that the clock sees.
void FinishOps();

// What the innermost op of this thread copies between host and device (kernels none).
Carried CarriedByOp();

// How many ops have begun on this thread (kernels none).
uint64_t OpsBegun();

// Whether the address lies in a tensor that an op of this thread was given (kernels none).
bool InTensorOfOp(uintptr_t address);

}  // namespace weir::emulated

#endif
