// The address range of one device: reserved once, far larger than VRAM, so that every block keeps its address for life.
// The only place that maps and unmaps. `page of address` indexes a flat table, so the extent of a pointer is found in
// constant time.
//
// Who may call: a run of pages is mapped or unmapped only by whoever took it out of the PageHeap (or owns its extent).
// Frames and peers have a mutex of their own (LockRank::kAddressSpace), held across the driver's calls, which never wait
// for the GPU: a peer that comes in the middle must miss no page. The owner table is guarded by the device's mutex.
#ifndef WEIR_ALLOCATOR_ADDRESS_SPACE_H_
#define WEIR_ALLOCATOR_ADDRESS_SPACE_H_

#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/lock_ranks.h"
#include "allocator/base/units.h"
#include "allocator/cuda/driver.h"
#include "allocator/frame_pool.h"
#include "allocator/page_heap.h"

namespace weir {

struct Extent;

class AddressSpace {
 public:
  // Reserves `size` addresses. Fails with the driver's status.
  static absl::StatusOr<std::unique_ptr<AddressSpace>> Create(Driver& driver, DeviceIndex device, Bytes size);

  PageCount size() const { return size_; }
  bool Contains(DeviceAddr addr) const { return addr >= base_ && addr - base_ < size_.bytes(); }
  DeviceAddr AddressOf(PageRun run) const { return base_ + kPageBytes * run.first; }
  uint64_t PageOf(DeviceAddr addr) const { return (addr - base_).count() >> kPageShift; }

  // Maps one frame per page, with access for the device and its peers. On failure nothing stays mapped and the frames are still in
  // `frames`; but after DATA_LOSS (the driver refused to undo it, too) the range must never be used again and the
  // frames that stay mapped are lost.
  absl::Status MapFrames(PageRun run, FrameReservation& frames);
  // Unmaps and hands the frames over. The caller has made sure that no stream uses them any more. On failure the range
  // must be considered lost: nothing is handed over.
  absl::Status UnmapFrames(PageRun run, std::vector<FrameHandle>* frames);
  // Kernels of `peer` may read and write what is mapped, now and from now on: peer access of a context does not cover
  // mapped frames, so each mapping has to grant it. Again for the same peer: nothing to do. Fails with the driver's status;
  // then nothing is promised and it can be asked again.
  absl::Status AddPeer(DeviceIndex peer);

  Extent* Owner(DeviceAddr addr) const { return Contains(addr) ? owners_[PageOf(addr)] : nullptr; }
  void SetOwner(PageRun run, Extent* extent);

 private:
  AddressSpace(Driver& driver, DeviceIndex device, DeviceAddr base, PageCount size);
  struct FreeMemory {
    void operator()(void* memory) const { std::free(memory); }
  };

  Driver& driver_;
  const DeviceAddr base_;
  const PageCount size_;
  // calloc'ed: pages never used cost no memory (a 2 TiB range has a million entries).
  std::unique_ptr<Extent*[], FreeMemory> owners_;
  RankedMutex mutex_{LockRank::kAddressSpace};
  std::unique_ptr<FrameHandle[], FreeMemory> frames_ ABSL_GUARDED_BY(mutex_);
  // The device, then its peers.
  absl::InlinedVector<DeviceIndex, 1> devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_ADDRESS_SPACE_H_
