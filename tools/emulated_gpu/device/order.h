// Happens-before on the device (correctness R18): every work has a past, every place its last writer and the readers since;
// what is neither in the past nor known to be complete is a report. Any thread; one lock, `Order().mutex`, before that of
// host_functions.cc.
//
// Completion is a fact about the device: what one host thread saw complete is complete for all of them, since how host
// threads order each other cannot be seen here. Order between streams comes from stream waits, the rules of the
// default streams, and such completion, from nothing else.
#ifndef WEIR_EMULATED_GPU_DEVICE_ORDER_H_
#define WEIR_EMULATED_GPU_DEVICE_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tools/emulated_gpu/device/access_map.h"
#include "tools/emulated_gpu/device/clocks.h"
#include "tools/emulated_gpu/device/engines.h"
#include "tools/emulated_gpu/device/regions.h"
#include "tools/emulated_gpu/device/work_log.h"

namespace weir::emulated {

struct Stream;

enum class Use {
  kRead,
  kWrite,
  kUnknown
};  // kUnknown: in flight, but not compared with reads and writes of others

// `rows` rows of `size` bytes, `pitch` bytes apart. Addresses that are neither device nor pinned memory are ignored.
struct Access {
  uintptr_t begin = 0;
  size_t size = 0;
  Use use = Use::kUnknown;
  size_t pitch = 0, rows = 1;
};

// Work enqueued on `stream` that touches `accesses`; `what` names it in reports (kernel or copy) and lives as long as the
// process.
// It takes what `demand` says, nothing if null.
struct NotedWork {
  Past past;
  uint64_t number = 0;  // in the log
};
NotedWork NoteWork(Stream& stream, const char* what, const Access* accesses, size_t count,
                   const Demand* demand = nullptr);
// Something that `work` touches too, which is known only now. It counts as of then: others may have come after the work
// meanwhile, and are not compared with it.
void NoteLateAccess(const NotedWork& work, const Access& access);

// ---- for memory.cc and vmm.cc. They may call under their own lock.
// Memory is there from now on. Places of frames are their bytes in the memfd, those of other memory its addresses.
inline constexpr Place kFramePlaces = Place{1} << 62;
void RegionAdded(uintptr_t begin, size_t size, Place place, bool host);
// It is gone, or its access changes: a report when work on it is not known to be complete. `call` does it.
// First, without the caller's lock: what is queued and touches the range runs while it still can.
void FinishUsers(uintptr_t begin, size_t size);
void RegionsRemoved(uintptr_t begin, size_t size, const char* call);
void RegionsChange(uintptr_t begin, size_t size, const char* call);
// The bytes of a place are given back.
void PlaceRemoved(Place begin, size_t size);

// ---- for the other files of the order
// The newest work of a dead stream.
struct Departed {
  Past past;
  int device;
  bool blocking;  // the legacy stream waits for it
};

struct OrderState {
  std::mutex mutex;
  // guarded by mutex:
  Ticks completed;                 // known to the host
  Ticks newest;                    // ticks given out
  std::vector<uint32_t> retired;   // indices of dead streams
  std::vector<Stream*> live;       // streams that have had work
  std::vector<Departed> departed;  // of streams that died with work that is not known to be complete
  AccessMap places;
  Regions regions;
  WorkLog log;
};
OrderState& Order();

// The next work of `stream`: gives it its tick. It comes after `other` too, if given.
Past StepLocked(Stream& stream, const Past* other = nullptr);
// StepLocked, and the checks of NoteWork.
Past NoteWorkLocked(Stream& stream, const char* what, const Access* accesses, size_t count,
                    const Demand* demand = nullptr);
// More time for the newest work of `stream`.
void ProlongLocked(Stream& stream, const Demand& demand);
// Some work that is not known to be complete may write to the range of host memory.
bool IsWrittenLocked(uintptr_t begin, size_t size);
bool IsCompleteLocked(const Past& past);
// Whether the legacy stream of its device waits for it.
bool IsBlocking(const Stream& stream);
// The host knows that `past` is complete.
void CompleteLocked(const Past& past);
// The past of a work that would come after all that was enqueued until now: on any device, on one.
Past EverythingLocked();
Past EverythingLocked(int device);
// The stream dies; its work goes on.
void RetireLocked(Stream& stream);

}  // namespace weir::emulated

#endif
