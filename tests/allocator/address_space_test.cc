#include "allocator/address_space.h"

#include <gtest/gtest.h>

#include "tests/fakes/fake_driver.h"

namespace weir {
namespace {

using fakes::Call;
using fakes::FakeDriver;
using fakes::Fault;

constexpr DeviceIndex kDevice{0};
constexpr PageRun kRun{2, PageCount(3)};

class AddressSpaceTest : public ::testing::Test {
 protected:
  FakeDriver driver_;
  ScopedContext context_{driver_, kDevice};
  std::unique_ptr<AddressSpace> space_ = *AddressSpace::Create(driver_, kDevice, kPageBytes * 8 - Bytes(1));
  FramePool pool_{driver_, kDevice, kPageBytes * 8};
};

TEST_F(AddressSpaceTest, Create_OddSize_IsRoundedUpToPages) { EXPECT_EQ(space_->size(), PageCount(8)); }

TEST_F(AddressSpaceTest, Create_DriverRefuses_ReturnsItsStatus) {
  driver_.PlanFault(
      Fault{.call = Call::kReserveAddresses, .status = absl::ResourceExhaustedError("planned")});
  EXPECT_TRUE(absl::IsResourceExhausted(AddressSpace::Create(driver_, kDevice, kPageBytes).status()));
}

TEST_F(AddressSpaceTest, Contains_Ends_AreExact) {
  DeviceAddr base = space_->AddressOf(PageRun{0, PageCount(1)});
  EXPECT_TRUE(space_->Contains(base));
  EXPECT_TRUE(space_->Contains(base + kPageBytes * 8 - Bytes(1)));
  EXPECT_FALSE(space_->Contains(base + kPageBytes * 8));
  EXPECT_FALSE(space_->Contains(base - Bytes(1)));
  EXPECT_FALSE(space_->Contains(DeviceAddr()));
}

TEST_F(AddressSpaceTest, Owner_EveryPageOfARun_IsFoundAndForgotten) {
  Extent* extent = reinterpret_cast<Extent*>(uintptr_t{64});
  space_->SetOwner(kRun, extent);
  DeviceAddr at = space_->AddressOf(kRun);
  EXPECT_EQ(space_->Owner(at), extent);
  EXPECT_EQ(space_->Owner(at + kPageBytes * 3 - Bytes(1)), extent);
  EXPECT_EQ(space_->Owner(at + kPageBytes * 3), nullptr);
  EXPECT_EQ(space_->Owner(at - Bytes(1)), nullptr);
  space_->SetOwner(kRun, nullptr);
  EXPECT_EQ(space_->Owner(at), nullptr);
}

TEST_F(AddressSpaceTest, MapAndUnmap_ARun_HandsTheFramesOver) {
  auto frames = pool_.TryReserve(PageCount(3));
  ASSERT_TRUE(space_->MapFrames(kRun, *frames).ok());
  EXPECT_EQ(frames->size(), PageCount());
  EXPECT_TRUE(driver_.Mapped(space_->AddressOf(kRun) + kPageBytes * 2));
  std::vector<FrameHandle> back;
  ASSERT_TRUE(space_->UnmapFrames(kRun, &back).ok());
  EXPECT_EQ(back.size(), 3u);
  EXPECT_FALSE(driver_.Mapped(space_->AddressOf(kRun)));
  pool_.Return(back);
  pool_.Trim();
  EXPECT_EQ(driver_.frames(), Bytes());
}

// Three maps and one set-access: whichever fails, nothing stays mapped and no frame is lost.
TEST_F(AddressSpaceTest, MapFrames_NthCallFails_IsUndone) {
  for (uint64_t nth = 1; nth <= 4; ++nth) {
    auto frames = pool_.TryReserve(PageCount(3));
    ASSERT_TRUE(frames.has_value());
    driver_.PlanFault(Fault{.nth = nth});
    EXPECT_FALSE(space_->MapFrames(kRun, *frames).ok());
    EXPECT_EQ(driver_.faults(), 1u);
    driver_.ClearFault();
    EXPECT_EQ(frames->size(), PageCount(3)) << "call " << nth;
    for (uint64_t page = 0; page < 3; ++page) {
      EXPECT_FALSE(driver_.Mapped(space_->AddressOf(kRun) + kPageBytes * page)) << "call " << nth;
    }
    ASSERT_TRUE(space_->MapFrames(kRun, *frames).ok()) << "call " << nth;
    std::vector<FrameHandle> back;
    ASSERT_TRUE(space_->UnmapFrames(kRun, &back).ok());
    pool_.Return(back);
  }
  EXPECT_EQ(pool_.pooled(), PageCount(3));
}

constexpr DeviceIndex kPeer{1};

TEST_F(AddressSpaceTest, AddPeer_PagesOfBeforeAndAfter_AreGranted) {
  constexpr PageRun kLater{6, PageCount(2)};
  auto frames = pool_.TryReserve(PageCount(5));
  ASSERT_TRUE(space_->MapFrames(kRun, *frames).ok());
  EXPECT_FALSE(driver_.Granted(kPeer, space_->AddressOf(kRun)));
  ASSERT_TRUE(space_->AddPeer(kPeer).ok());
  ASSERT_TRUE(space_->MapFrames(kLater, *frames).ok());
  for (uint64_t page : {2, 3, 4, 6, 7}) {
    const DeviceAddr at = space_->AddressOf(PageRun{page, PageCount(1)});
    EXPECT_TRUE(driver_.Granted(kPeer, at)) << page;
    EXPECT_TRUE(driver_.Granted(kDevice, at)) << page;
  }
}

TEST_F(AddressSpaceTest, AddPeer_Twice_IsOneCall) {
  auto frames = pool_.TryReserve(PageCount(3));
  ASSERT_TRUE(space_->MapFrames(kRun, *frames).ok());
  const uint64_t before = driver_.calls();
  ASSERT_TRUE(space_->AddPeer(kPeer).ok());
  ASSERT_TRUE(space_->AddPeer(kPeer).ok());
  ASSERT_TRUE(space_->AddPeer(kDevice).ok());
  EXPECT_EQ(driver_.calls(), before + 1);
}

TEST_F(AddressSpaceTest, AddPeer_DriverRefuses_CanBeAskedAgain) {
  auto frames = pool_.TryReserve(PageCount(3));
  ASSERT_TRUE(space_->MapFrames(kRun, *frames).ok());
  driver_.PlanFault(Fault{.call = Call::kSetAccess});
  EXPECT_FALSE(space_->AddPeer(kPeer).ok());
  driver_.ClearFault();
  ASSERT_TRUE(space_->AddPeer(kPeer).ok());
  EXPECT_TRUE(driver_.Granted(kPeer, space_->AddressOf(kRun)));
}

TEST_F(AddressSpaceTest, UnmapFrames_DriverRefuses_HandsNothingOver) {
  auto frames = pool_.TryReserve(PageCount(3));
  ASSERT_TRUE(space_->MapFrames(kRun, *frames).ok());
  driver_.PlanFault(Fault{.call = Call::kUnmap});
  std::vector<FrameHandle> back;
  EXPECT_FALSE(space_->UnmapFrames(kRun, &back).ok());
  EXPECT_TRUE(back.empty());
}

}  // namespace
}  // namespace weir
