// A device allocator on a fake driver, for the tests of the allocator and of the pager.
#ifndef WEIR_TESTS_ALLOCATOR_DEVICE_FIXTURE_H_
#define WEIR_TESTS_ALLOCATOR_DEVICE_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "allocator/device_allocator.h"
#include "tests/fakes/fake_driver.h"

namespace weir {

inline constexpr DeviceIndex kDevice{0};
inline constexpr Stream kStreamA(1), kStreamB(2), kStreamC(3);

// Sizes of a block of each kind, for caps below 1 GiB.
inline constexpr Bytes kSmall = KiB(4), kMedium = MiB(1), kLarge = MiB(4);

class DeviceFixture {
 public:
  explicit DeviceFixture(PageCount cap, fakes::FakeDriver::Config config = {}) : driver(config) {
    driver.SetFrameLimit(cap.bytes());
    device = *DeviceAllocator::Create(driver, {kDevice, cap.bytes(), kPageBytes * 512});
  }
  ~DeviceFixture() {
    EXPECT_TRUE(device->IsValid());
    driver.FinishEverything();
  }

  // Outside any op. Fails the test when there is no room.
  DeviceAddr Allocate(Bytes size, Stream stream = kStreamA) {
    absl::StatusOr<DeviceAddr> at = device->Allocate(size, stream, no_op);
    EXPECT_TRUE(at.ok()) << at.status();
    return at.ok() ? *at : DeviceAddr();
  }
  void Free(DeviceAddr at) { EXPECT_TRUE(device->Free(at)); }
  void Write(DeviceAddr at, Bytes size, uint32_t pattern, Stream stream = kStreamA) {
    fakes::WritePattern(driver, stream, {at, size}, pattern);
  }
  void Check(DeviceAddr at, Bytes size, uint32_t pattern, Stream stream = kStreamA,
             std::string what = "check") {
    fakes::CheckPattern(driver, stream, {at, size}, pattern, std::move(what));
  }
  uint64_t pins(DeviceAddr at) {
    LockHolder lock(&device->mutex());
    Block* block = device->FindBlockLocked(at);
    return block == nullptr ? 0 : block->extent->pins;
  }

  fakes::FakeDriver driver;
  std::unique_ptr<DeviceAllocator> device;
  OpPins no_op;  // never in an op
};

}  // namespace weir

#endif  // WEIR_TESTS_ALLOCATOR_DEVICE_FIXTURE_H_
