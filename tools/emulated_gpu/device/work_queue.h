// Work that was enqueued and has not run: copies, memsets, host functions. It runs when something forces it, and then only
// what that comes after, in the order of enqueueing; kernels are never queued. All calls hold the lock of order.h.
//
// Which work comes after which is known from the pasts alone, so there are no entries for events and waits: a wait binds
// to the record at its time, whatever is recorded into the event later.
#ifndef WEIR_EMULATED_GPU_DEVICE_WORK_QUEUE_H_
#define WEIR_EMULATED_GPU_DEVICE_WORK_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

#include "tools/emulated_gpu/device/clocks.h"

namespace weir::emulated {

using OrderLock = std::unique_lock<std::mutex>;  // of Order().mutex

// `run` is called under the lock. With lazy streams it waits until it is forced, or until the seed wants it early, or too
// much is queued; with eager ones it runs now, after the host functions that come before it.
void QueueLocked(OrderLock& lock, const Past& past, std::function<void()> run);
// Runs on the thread of host_functions.h, at the latest some 100 ms after nothing stands in its way any more: the host
// may wait for its effects without a call.
void QueueHostFunctionLocked(const Past& past, void (*function)(void*), void* argument);

// Runs what `past` holds. Waits for host functions, with the lock given up meanwhile.
void RunLocked(OrderLock& lock, const Past& past);
// The same without waiting: false if a host function has to end first. It has been started.
bool TryRunLocked(const Past& past);
// What is queued on one stream up to `tick`, and what that comes after; without waiting.
bool TryRunThroughLocked(uint32_t index, Tick tick);
void RunAllLocked(OrderLock& lock);

size_t QueuedLocked();
// Some host function may still write anything.
bool HostFunctionsQueuedLocked();

// One draw of the seed (WEIR_EMULATED_SEED unless Reseed), below `bound`; seed 0 always draws 0.
uint64_t DrawLocked(uint64_t bound);
uint64_t SeedLocked();
void ReseedLocked(uint64_t seed);

}  // namespace weir::emulated

#endif
