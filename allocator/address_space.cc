#include "allocator/address_space.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"

namespace weir {

absl::StatusOr<std::unique_ptr<AddressSpace>> AddressSpace::Create(Driver& driver, DeviceIndex device,
                                                                   Bytes size) {
  PageCount pages = PageCount::ToHold(size);
  absl::StatusOr<DeviceAddr> base = driver.ReserveAddresses(pages.bytes());
  if (!base.ok()) return base.status();
  return std::unique_ptr<AddressSpace>(new AddressSpace(driver, device, *base, pages));
}

AddressSpace::AddressSpace(Driver& driver, DeviceIndex device, DeviceAddr base, PageCount size)
    : driver_(driver),
      base_(base),
      size_(size),
      owners_(static_cast<Extent**>(std::calloc(size.count(), sizeof(Extent*)))),
      frames_(static_cast<FrameHandle*>(std::calloc(size.count(), sizeof(FrameHandle)))),
      devices_({device}) {
  WEIR_CHECK(owners_ != nullptr && frames_ != nullptr) << "no memory for the address table";
}

absl::Status AddressSpace::MapFrames(PageRun run, FrameReservation& frames) {
  WEIR_CHECK(frames.size() >= run.count);
  LockHolder lock(&mutex_);
  std::vector<FrameHandle> taken;
  absl::Status status;
  uint64_t mapped = 0;
  for (; mapped < run.count.count() && status.ok(); ++mapped) {
    FrameHandle frame = frames.Take();
    taken.push_back(frame);
    uint64_t page = run.first + mapped;
    WEIR_DCHECK(frames_[page].value == 0);
    status = driver_.Map(AddressOf(PageRun{page, PageCount(1)}), kPageBytes, frame);
    if (!status.ok()) break;
    frames_[page] = frame;
  }
  if (status.ok()) status = driver_.SetAccess(devices_, AddressOf(run), run.count.bytes());
  if (status.ok()) return status;
  if (mapped > 0) {
    absl::Status undone = driver_.Unmap(AddressOf(run), kPageBytes * mapped);
    if (!undone.ok()) {
      taken.erase(taken.begin(),
                  taken.begin() + static_cast<ptrdiff_t>(mapped));  // these stay where they are
      frames.PutBack(std::move(taken));
      return absl::DataLossError(
          absl::StrCat(status.message(), "; and it could not be undone: ", undone.message()));
    }
  }
  for (uint64_t i = 0; i < mapped; ++i) frames_[run.first + i] = FrameHandle{};
  frames.PutBack(std::move(taken));
  return status;
}

absl::Status AddressSpace::UnmapFrames(PageRun run, std::vector<FrameHandle>* frames) {
  LockHolder lock(&mutex_);
  absl::Status status = driver_.Unmap(AddressOf(run), run.count.bytes());
  if (!status.ok()) return status;
  for (uint64_t page = run.first; page < run.end(); ++page) {
    WEIR_DCHECK(frames_[page].value != 0);
    frames->push_back(frames_[page]);
    frames_[page] = FrameHandle{};
  }
  return status;
}

absl::Status AddressSpace::AddPeer(DeviceIndex peer) {
  LockHolder lock(&mutex_);
  if (absl::c_linear_search(devices_, peer)) return absl::OkStatus();
  for (uint64_t page = 0; page < size_.count();) {
    uint64_t end = page;
    while (end < size_.count() && frames_[end].value != 0) ++end;
    if (end > page) {
      const PageRun run{page, PageCount(end - page)};
      if (absl::Status status = driver_.SetAccess({peer}, AddressOf(run), run.count.bytes()); !status.ok()) {
        return status;
      }
    }
    page = end + 1;
  }
  devices_.push_back(peer);
  return absl::OkStatus();
}

void AddressSpace::SetOwner(PageRun run, Extent* extent) {
  for (uint64_t page = run.first; page < run.end(); ++page) owners_[page] = extent;
}

}  // namespace weir
