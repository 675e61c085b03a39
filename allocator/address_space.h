// The address range of one device: reserved once, far larger than VRAM, so that every block keeps its address for life.
// The only place that maps and unmaps. `page of address` indexes a flat table, so the extent of a pointer is found in
// constant time.
//
// Who may call: a run of pages is mapped or unmapped only by whoever took it out of the PageHeap (or owns its extent);
// the frames table therefore needs no lock. The owner table is guarded by the device's mutex.
#ifndef WEIR_ALLOCATOR_ADDRESS_SPACE_H_
#define WEIR_ALLOCATOR_ADDRESS_SPACE_H_

#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

  // Maps one frame per page, with access for the device. On failure nothing stays mapped and the frames are still in
  // `frames`; but after DATA_LOSS (the driver refused to undo it, too) the range must never be used again and the
  // frames that stay mapped are lost.
  absl::Status MapFrames(PageRun run, FrameReservation& frames);
  // Unmaps and hands the frames over. The caller has made sure that no stream uses them any more. On failure the range
  // must be considered lost: nothing is handed over.
  absl::Status UnmapFrames(PageRun run, std::vector<FrameHandle>* frames);

  Extent* Owner(DeviceAddr addr) const { return Contains(addr) ? owners_[PageOf(addr)] : nullptr; }
  void SetOwner(PageRun run, Extent* extent);

 private:
  AddressSpace(Driver& driver, DeviceIndex device, DeviceAddr base, PageCount size);
  struct FreeMemory {
    void operator()(void* memory) const { std::free(memory); }
  };

  Driver& driver_;
  const DeviceIndex device_;
  const DeviceAddr base_;
  const PageCount size_;
  // calloc'ed: pages never used cost no memory (a 2 TiB range has a million entries).
  std::unique_ptr<Extent*[], FreeMemory> owners_;
  std::unique_ptr<FrameHandle[], FreeMemory> frames_;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_ADDRESS_SPACE_H_
