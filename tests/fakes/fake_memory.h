// The memory of the fake device and its pinned host memory, at the granularity of the smallest block: of
// every 512 bytes the first eight are real, the rest do not exist. Blocks are aligned to 512, so each block
// has bytes of its own and a copy, reuse or unmap that goes wrong shows in them, at a sixty-fourth of the
// cost. Not synchronised: guarded by the fake driver's mutex. Misuse is returned as a sentence, empty when
// there is none.
#ifndef WEIR_TESTS_FAKES_FAKE_MEMORY_H_
#define WEIR_TESTS_FAKES_FAKE_MEMORY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/cuda/driver.h"
#include "tests/fakes/fake_clock.h"

namespace weir::fakes {

inline constexpr uint64_t kGranule = 512;

// A frame, or one piece of pinned host memory.
struct Region {
  uint64_t* words = nullptr;
  size_t stride = 1;  // from one granule's word to the next, in words
  std::vector<uint64_t> own_words;
  std::vector<AccessShadow> shadow;
  VectorClock uses;  // the last task of each stream that uses it
  Bytes size;
  uint64_t mappings = 0;  // frames only

  uint64_t& Word(uint64_t granule) { return words[granule * stride]; }
};

// A run of granules of one region.
struct Piece {
  std::shared_ptr<Region> region;
  uint64_t first = 0;
  uint64_t count = 0;
};

class FakeMemory {
 public:
  explicit FakeMemory(Bytes physical) : physical_(physical) {}
  ~FakeMemory();
  FakeMemory(const FakeMemory&) = delete;
  FakeMemory& operator=(const FakeMemory&) = delete;

  DeviceAddr Reserve(Bytes size);
  bool Reserved(DeviceAddr at, Bytes size) const;
  // Null handle: more than the physical memory.
  FrameHandle CreateFrame(Bytes size);
  std::string ReleaseFrame(FrameHandle frame);
  std::string Map(DeviceAddr at, Bytes size, FrameHandle frame);
  std::string SetAccess(absl::Span<const DeviceIndex> devices, DeviceAddr at, Bytes size);
  std::string Unmap(DeviceAddr at, Bytes size);
  // The granules of [at, at + size), which must be mapped with access.
  std::string Resolve(DeviceAddr at, Bytes size, std::vector<Piece>* pieces) const;
  bool Mapped(DeviceAddr at) const { return FindMapping(at) != nullptr; }
  // Whether `device` was granted access to the mapping at `at`.
  bool Granted(DeviceIndex device, DeviceAddr at) const;
  // The frames that are mapped in [at, at + size), and the memory behind `memory`: what an unmap or free
  // ends.
  std::vector<std::shared_ptr<Region>> MappedIn(DeviceAddr at, Bytes size) const;
  std::shared_ptr<Region> HostRegion(void* memory) const;

  void* HostAlloc(Bytes size);  // null: out of memory
  std::string HostFree(void* memory);
  std::string ResolveHost(const void* memory, Bytes size, std::vector<Piece>* pieces) const;
  void set_host_limit(Bytes limit) { host_limit_ = limit; }

  Bytes physical() const { return physical_; }
  Bytes frames() const { return frame_bytes_; }
  Bytes peak_frames() const { return peak_frame_bytes_; }
  Bytes host() const { return host_bytes_; }

 private:
  struct Mapping {
    Bytes size;
    FrameHandle frame;
    std::set<DeviceIndex> access{};
  };
  // The mapping that contains `at`, its first address in `*start`; null if there is none.
  const Mapping* FindMapping(DeviceAddr at, DeviceAddr* start = nullptr) const;
  // Calls `visit` for the mappings that tile [at, at + size) exactly; says what does not fit otherwise.
  std::string ForWhole(DeviceAddr at, Bytes size, const std::function<void(Mapping&)>& visit);

  const Bytes physical_;
  Bytes host_limit_ = Bytes::Max();
  Bytes frame_bytes_, peak_frame_bytes_, host_bytes_;
  uint64_t next_frame_ = 1;
  DeviceAddr next_address_{uint64_t{1} << 40};
  std::map<DeviceAddr, Bytes> reservations_;
  std::map<uint64_t, std::shared_ptr<Region>> frames_;
  std::map<DeviceAddr, Mapping> mappings_;
  std::map<uintptr_t, std::shared_ptr<Region>> host_;
};

}  // namespace weir::fakes

#endif  // WEIR_TESTS_FAKES_FAKE_MEMORY_H_
