// Those who want to hear of every trace entry (NCCL registers segments by them), history or not.
//
// They are called with no lock held, in the order of the entries, by one thread at a time: whoever finds the queue
// unattended tells what is in it, so a call may return before its own entries were told by another thread. What a tracker
// throws is one line on the log. An entry that a tracker causes itself is told after it.
#ifndef WEIR_PYTORCH_PLUGIN_TRACE_TRACKERS_H_
#define WEIR_PYTORCH_PLUGIN_TRACE_TRACKERS_H_

#include <c10/core/CachingDeviceAllocator.h>

namespace weir::plugin {

using c10::CachingDeviceAllocator::AllocatorTraceTracker;
using c10::CachingDeviceAllocator::TraceEntry;

void AttachTracker(AllocatorTraceTracker tracker);
bool HasTrackers();
// To be called in the order of the entries; calls nobody.
void QueueForTrackers(const TraceEntry& entry);
// Hands the queue to the trackers. No lock may be held.
void TellTrackers() noexcept;

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_TRACE_TRACKERS_H_
