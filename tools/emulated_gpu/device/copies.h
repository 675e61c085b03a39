// Copies and memsets. They are checked when they are enqueued and run as work_queue.h says; which of their bytes move is
// in travel.h. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_COPIES_H_
#define WEIR_EMULATED_GPU_DEVICE_COPIES_H_

#include <cstddef>

#include "tools/emulated_gpu/device/status.h"
#include "tools/emulated_gpu/device/transfers.h"

namespace weir::emulated {

struct Stream;

enum class Direction { kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice, kAny };

// kBlocking: the call without Async in its name. What either waits for is CUDA's "API synchronization behavior": a
// copy to the host, or from pinned memory, returns when it is complete; one from pageable memory when its bytes were
// taken, after waiting for the work before it; one inside the device does not wait. Async copies to pageable memory wait.
// kGraph: of a graph that was launched; never waits, and takes pageable memory when it runs.
enum class Call { kBlocking, kAsync, kGraph };

// INVALID_VALUE when an end lies on the wrong side of `direction`; ILLEGAL_ADDRESS (and a report) when a
// device range is not mapped.
Status Copy(void* to, const void* from, const Rows& rows, Direction direction, Call call, CUstream stream);
Status CopyOn(Stream& stream, void* to, const void* from, const Rows& rows, Direction direction, Call call);
// What lies on `to_device` and `from_device`: the copy comes after all earlier work of both devices and before all later one.
Status CopyBetweenDevices(void* to, int to_device, const void* from, int from_device, size_t bytes);
// `value` is repeated every `element` (1, 2 or 4) bytes.
Status Fill(void* to, unsigned value, size_t element, const Rows& rows, Call call, CUstream stream);
Status FillOn(Stream& stream, void* to, unsigned value, size_t element, const Rows& rows, Call call);

}  // namespace weir::emulated

#endif
