// torch.cuda.memory_snapshot() and _snapshot(): the core's extents and blocks in torch's structs.
//
// Any thread, with or without the GIL. Bytes. An extent is a segment. What torch has no word for:
//  - Evicted extents are segments too, whose pool is kEvictedPool (memory_history.h): their blocks count as allocated, as in memory_stats,
//    but they hold no frame. All other segments add up to what memory_stats calls reserved.
//  - Free pages that still have their frames, and frames that are mapped nowhere, are segments of one inactive block,
//    `is_expandable`; memory_stats does not count them as segments.
#ifndef WEIR_PYTORCH_PLUGIN_MEMORY_SNAPSHOT_H_
#define WEIR_PYTORCH_PLUGIN_MEMORY_SNAPSHOT_H_

#include <c10/cuda/CUDACachingAllocator.h>

namespace weir::plugin {

// Of devices [0, device_count). `pool`: {0, 0} for all, else the segments of that pool. The history comes with it, and
// hears of it.
c10::cuda::CUDACachingAllocator::SnapshotInfo TakeSnapshot(int device_count, c10::MempoolId_t pool,
                                                           bool include_traces);

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_MEMORY_SNAPSHOT_H_
