// Touch: what comes back, for whom, and in which order (R9, R11).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/offload/pager_fixture.h"

namespace weir {
namespace {

using fakes::Call;
using fakes::Fault;
using ::testing::HasSubstr;

// A cap of eight pages: four large tensors of two.
class PagerTouchTest : public ::testing::Test {
 protected:
  // A tensor that is in RAM, and room in VRAM for two large ones.
  Tensor InRam(Bytes size = kLarge, Stream stream = kStreamA) {
    Tensor tensor = fixture_.Make(size, ++patterns_, stream);
    fixture_.EvictByPressure(tensor, kPageBytes * 8, stream);
    return tensor;
  }

  PagerFixture fixture_{PageCount(8), PageCount(32)};
  fakes::FakeDriver& driver_ = fixture_.driver;
  DeviceAllocator& device_ = *fixture_.device;
  Pager& pager_ = fixture_.pager;
  OpPins& op_ = fixture_.op;
  uint32_t patterns_ = 0;
};

TEST_F(PagerTouchTest, Touch_Resident_PinsWithoutADriverCall) {
  Tensor tensor = fixture_.Make(kLarge, 1);
  uint64_t calls = driver_.calls();
  {
    OpScope op(op_, "op");
    EXPECT_TRUE(fixture_.Touch({&tensor}, op_).ok());
    EXPECT_EQ(fixture_.pins(tensor.at), 1u);
  }
  EXPECT_EQ(driver_.calls(), calls);
}

TEST_F(PagerTouchTest, Touch_InRam_TheBytesAreThereForThatStream) {
  for (Bytes size : {kMedium, kLarge, kPageBytes * 7}) {
    Tensor tensor = InRam(size);
    EXPECT_FALSE(pager_.IsResident(tensor.at));
    EXPECT_TRUE(tensor.storage->denied);
    fixture_.Use(tensor, kStreamA, "after the fetch");
    EXPECT_TRUE(pager_.IsResident(tensor.at));
    EXPECT_FALSE(tensor.storage->denied);
    fixture_.Drop(tensor);
  }
}

TEST_F(PagerTouchTest, AddAddressReader_WhileThereIsOne_NoStorageIsDenied) {
  Tensor left = InRam();
  pager_.AddAddressReader(1);
  pager_.AddAddressReader(1);
  EXPECT_FALSE(left.storage->denied);
  Tensor leaves = InRam();
  EXPECT_FALSE(leaves.storage->denied);
  fixture_.Use(left, kStreamA, "a fetch");
  pager_.AddAddressReader(-1);
  EXPECT_FALSE(leaves.storage->denied);
  pager_.AddAddressReader(-1);
  EXPECT_TRUE(leaves.storage->denied);
  EXPECT_EQ(left.storage->denied, !pager_.IsResident(left.at));
  fixture_.Use(leaves, kStreamA, "a fetch");
  EXPECT_FALSE(leaves.storage->denied);
}

TEST_F(PagerTouchTest, Touch_InteriorAddress_FetchesTheWholeBlock) {
  Tensor tensor = InRam();
  OpScope op(op_, "op");
  TouchRequest request{tensor.at + kMedium, tensor.storage.get()};
  ASSERT_TRUE(pager_.Touch(std::span(&request, 1), op_, kStreamA).ok());
  fixture_.Check(tensor.at, kLarge, tensor.pattern);
}

TEST_F(PagerTouchTest, Touch_ForeignAddresses_AreSkipped) {
  OpScope op(op_, "op");
  TouchRequest requests[] = {TouchRequest{DeviceAddr(4096)}, TouchRequest{DeviceAddr()}};
  EXPECT_TRUE(pager_.Touch(requests, op_, kStreamA).ok());
  EXPECT_EQ(op_.size(), 0u);
}

TEST_F(PagerTouchTest, Touch_SameTensorTwice_IsFetchedOnce) {
  Tensor tensor = InRam();
  OpScope op(op_, "op");
  ASSERT_TRUE(fixture_.Touch({&tensor, &tensor}, op_).ok());
  EXPECT_EQ(pager_.Counters().fetches, 1u);
}

TEST_F(PagerTouchTest, TouchIfResident_InRam_DoesNothing) {
  Tensor resident = fixture_.Make(kLarge, 77);
  Tensor tensor = InRam();
  fixture_.Use(resident);
  OpScope op(op_, "op");
  EXPECT_FALSE(pager_.TouchIfResident(PagerFixture::Requests({&resident, &tensor}), op_, kStreamA));
  EXPECT_EQ(op_.size(), 0u);
  EXPECT_EQ(fixture_.state(tensor), Residency::kInRam);
  EXPECT_TRUE(pager_.TouchIfResident(PagerFixture::Requests({&resident}), op_, kStreamA));
  EXPECT_EQ(op_.size(), 1u);
}

// R9: every stream that touches a filling extent waits, not only the one that fetched it.
// C40
TEST_F(PagerTouchTest, Touch_FillingOnAnotherStream_ThatStreamWaitsForTheCopy) {
  Tensor tensor = InRam();
  fixture_.Use(tensor, kStreamA);
  ASSERT_EQ(fixture_.state(tensor), Residency::kFilling);
  fixture_.Use(tensor, kStreamB, "on the second stream");
  fixture_.Use(tensor, kStreamC, "on the third stream");
}

TEST_F(PagerTouchTest, TouchIfResident_FillingOnAnotherStream_ThatStreamWaitsForTheCopy) {
  Tensor tensor = InRam();
  fixture_.Use(tensor, kStreamA);
  OpScope op(op_, "op");
  ASSERT_TRUE(pager_.TouchIfResident(PagerFixture::Requests({&tensor}), op_, kStreamB));
  fixture_.Check(tensor.at, tensor.size, tensor.pattern, kStreamB);
}

TEST_F(PagerTouchTest, Touch_WaitOfTheSecondStreamFails_TheBytesAreRightOrItSaysSo) {
  Tensor tensor = InRam();
  fixture_.Use(tensor, kStreamA);
  driver_.PlanFault(Fault{.call = Call::kWaitEvent});
  OpScope op(op_, "op");
  if (fixture_.Touch({&tensor}, op_, kStreamB).ok()) {
    fixture_.Check(tensor.at, tensor.size, tensor.pattern, kStreamB);
  }
  EXPECT_EQ(driver_.faults(), 1u);
}

TEST_F(PagerTouchTest, Allocate_HoleOfAFillingExtent_IsOrderedAfterTheCopy) {
  Tensor keep = fixture_.Make(kMedium, 1), gone = fixture_.Make(kMedium, 2);
  ASSERT_EQ(gone.at, keep.at + kMedium);
  fixture_.EvictByPressure(keep, kPageBytes * 8);
  fixture_.Use(keep, kStreamB, "fetched on B");
  fixture_.Drop(gone);
  DeviceAddr hole = fixture_.Allocate(kMedium, kStreamA);
  ASSERT_EQ(hole, gone.at);
  fixture_.Write(hole, kMedium, 3, kStreamA);
  fixture_.Check(hole, kMedium, 3, kStreamA, "the block in the hole");
  driver_.FinishEverything();
}

TEST_F(PagerTouchTest, Free_Filling_ItsPagesAreReusedOnlyAfterTheCopy) {
  Tensor tensor = InRam();
  {
    OpScope op(op_, "an op on B that launches nothing");
    ASSERT_TRUE(fixture_.Touch({&tensor}, op_, kStreamB).ok());
  }
  ASSERT_EQ(fixture_.state(tensor), Residency::kFilling);
  fixture_.Drop(tensor);
  DeviceAddr next = fixture_.Allocate(kLarge, kStreamA);
  fixture_.Write(next, kLarge, 9, kStreamA);
  fixture_.Check(next, kLarge, 9, kStreamA, "the next block at the address");
  EXPECT_TRUE(device_.IsValid());
}

TEST_F(PagerTouchTest, Free_Filling_ItsSlotsAreReusedOnlyAfterTheCopy) {
  Tensor tensor = InRam();
  fixture_.Use(tensor, kStreamA);
  fixture_.Drop(tensor);
  pager_.Trim();
  EXPECT_EQ(fixture_.ram.used(), kLarge);
  driver_.FinishEverything();
  pager_.Trim();
  EXPECT_EQ(fixture_.ram.used(), Bytes());
  EXPECT_EQ(driver_.host_memory(), Bytes());
}

TEST_F(PagerTouchTest, Free_InRam_ItsSlotsComeBack) {
  Tensor tensor = InRam();
  EXPECT_EQ(fixture_.ram.used(), kLarge);
  fixture_.Drop(tensor);
  pager_.Trim();
  EXPECT_EQ(fixture_.ram.used(), Bytes());
  EXPECT_EQ(tensor.storage->held, 0);
}

TEST_F(PagerTouchTest, Free_OneOfTwoBlocksInRam_TheOtherComesBackWhole) {
  Tensor first = fixture_.Make(kMedium, 1), second = fixture_.Make(kMedium, 2);
  fixture_.EvictByPressure(first, kPageBytes * 8);
  EXPECT_EQ(fixture_.state(second), Residency::kInRam);  // one extent
  fixture_.Drop(first);
  fixture_.Use(second, kStreamA);
  fixture_.Drop(second);
  EXPECT_EQ(second.storage->held, 0);
}

TEST_F(PagerTouchTest, Touch_MoreThanTheCap_PinsNothingAndLosesNothing) {
  Tensor first = InRam(kPageBytes * 5), second = InRam(kPageBytes * 5);
  {
    OpScope op(op_, "aten::too_large");
    absl::Status status = fixture_.Touch({&first, &second}, op_);
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("aten::too_large"));
    EXPECT_EQ(op_.size(), 0u);
    EXPECT_EQ(fixture_.pins(first.at) + fixture_.pins(second.at), 0u);
  }
  EXPECT_TRUE(device_.IsValid());
  fixture_.Use(first);
  fixture_.Use(second);
}

TEST_F(PagerTouchTest, Touch_FailsInsideAnOp_EarlierPinsOfTheOpStay) {
  Tensor first = InRam(kPageBytes * 5), second = InRam(kPageBytes * 5);
  OpScope op(op_, "op");
  ASSERT_TRUE(fixture_.Touch({&first}, op_).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(fixture_.Touch({&second}, op_)));
  EXPECT_EQ(fixture_.pins(first.at), 1u);
  fixture_.Check(first.at, first.size, first.pattern);
}

TEST_F(PagerTouchTest, PinForGood_InRam_IsFetchedAndNeverLeavesAgain) {
  Tensor tensor = InRam();
  ASSERT_TRUE(pager_.PinForGood(tensor.at, op_, kStreamA).ok());
  EXPECT_EQ(op_.size(), 0u);
  fixture_.Check(tensor.at, tensor.size, tensor.pattern);
  EXPECT_TRUE(absl::IsResourceExhausted(device_.Allocate(kPageBytes * 7, kStreamA, op_).status()));
  EXPECT_TRUE(pager_.IsResident(tensor.at));
  fixture_.Drop(tensor);
  fixture_.Allocate(kPageBytes * 8);
}

TEST_F(PagerTouchTest, PinForGood_InRam_AnyStreamMayUseTheAddressAtOnce) {
  Tensor tensor = InRam();
  ASSERT_TRUE(pager_.PinForGood(tensor.at, op_, kStreamA).ok());
  fixture_.Check(tensor.at, tensor.size, tensor.pattern, kStreamB);
}

TEST_F(PagerTouchTest, PinForGood_FillingOnAnotherStream_AnyStreamMayUseTheAddressAtOnce) {
  Tensor tensor = InRam();
  fixture_.Use(tensor, kStreamA);
  ASSERT_EQ(fixture_.state(tensor), Residency::kFilling);
  ASSERT_TRUE(pager_.PinForGood(tensor.at, op_, kStreamB).ok());
  fixture_.Check(tensor.at, tensor.size, tensor.pattern, kStreamC);
}

// Every driver call of a fetch fails, once and for good: the touch says so, and after one fault the bytes are
// there.
class PagerFetchFaultTest : public ::testing::TestWithParam<bool> {};

// C28
TEST_P(PagerFetchFaultTest, Fetch_NthDriverCallFails_LosesNothing) {
  const bool for_good = GetParam();
  uint64_t faults = 1;
  for (uint64_t nth = 1; faults > 0; ++nth) {
    SCOPED_TRACE(::testing::Message() << "call " << nth);
    PagerFixture fixture(PageCount(8), PageCount(32));
    Tensor tensor = fixture.Make(kLarge, 1);
    fixture.EvictByPressure(tensor, kPageBytes * 8);
    fixture.driver.PlanFault(Fault{.nth = nth, .for_good = for_good});
    {
      OpScope op(fixture.op, "op");
      if (fixture.Touch({&tensor}, fixture.op).ok()) {
        fixture.Check(tensor.at, tensor.size, tensor.pattern);
      } else {
        EXPECT_EQ(fixture.op.size(), 0u);
      }
    }
    faults = fixture.driver.faults();
    fixture.driver.ClearFault();
    EXPECT_EQ(fixture.pins(tensor.at), 0u);
    EXPECT_TRUE(fixture.device->IsValid());
    if (!for_good) fixture.Use(tensor, kStreamA, "after the fault");
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, PagerFetchFaultTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "ForGood" : "Once"; });

}  // namespace
}  // namespace weir
