#include "offload/pinned_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/fakes/fake_driver.h"

namespace weir {
namespace {

using fakes::Call;
using fakes::FakeDriver;
using fakes::Fault;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DeviceIndex kDevice{0};

class PinnedStoreTest : public ::testing::Test {
 protected:
  FakeDriver driver_;
  ScopedContext context_{driver_, kDevice};
  PinnedStore store_{driver_, kPageBytes * 100 + Bytes(4096)};  // rounded down to 100 pages
};

TEST_F(PinnedStoreTest, Take_WholeBudget_Works_AndOnePageMoreIsRefused) {
  auto most = store_.Take(PageCount(70));
  auto rest = store_.Take(PageCount(30));
  ASSERT_TRUE(most.ok() && rest.ok());
  std::set<void*> distinct;
  for (const auto* slots : {&*most, &*rest}) {
    for (RamSlot slot : *slots) distinct.insert(slot.memory);
  }
  EXPECT_EQ(distinct.size(), 100u);
  EXPECT_EQ(driver_.host_memory(), kPageBytes * 100);
  auto more = store_.Take(PageCount(1));
  EXPECT_TRUE(absl::IsResourceExhausted(more.status()));
  EXPECT_THAT(std::string(more.status().message()), HasSubstr("WEIR_RAM"));
  store_.Return(*rest);
  EXPECT_TRUE(store_.Take(PageCount(30)).ok());
}

TEST_F(PinnedStoreTest, Take_MoreThanFits_TakesNothing) {
  auto some = store_.Take(PageCount(60));
  EXPECT_FALSE(store_.Take(PageCount(50)).ok());
  EXPECT_EQ(store_.used(), kPageBytes * 60);
}

TEST_F(PinnedStoreTest, Take_FreshStore_GivesContiguousSlots) {
  auto slots = store_.Take(PageCount(8));
  for (size_t i = 1; i < slots->size(); ++i) {
    EXPECT_EQ(static_cast<char*>((*slots)[i].memory),
              static_cast<char*>((*slots)[i - 1].memory) + kPageBytes.count());
  }
}

TEST_F(PinnedStoreTest, Take_SlotsWereReturned_PinsNothingNew) {
  auto slots = store_.Take(PageCount(4));
  store_.Return(*slots);
  uint64_t allocations = driver_.CountOf(Call::kHostAlloc);
  EXPECT_TRUE(store_.Take(PageCount(4)).ok());
  EXPECT_EQ(driver_.CountOf(Call::kHostAlloc), allocations);
}

TEST_F(PinnedStoreTest, Take_SystemRefusesAWholeSlab_PinsWhatIsNeeded) {
  driver_.SetHostLimit(kPageBytes * 3);
  auto slots = store_.Take(PageCount(3));
  EXPECT_TRUE(slots.ok());
  EXPECT_EQ(store_.pinned(), kPageBytes * 3);
  EXPECT_TRUE(absl::IsResourceExhausted(store_.Take(PageCount(1)).status()));
  driver_.SetHostLimit(Bytes::Max());
  EXPECT_TRUE(store_.Take(PageCount(1)).ok());
}

TEST_F(PinnedStoreTest, WarmUp_Repeated_PinsOneSlabOnce) {
  store_.WarmUp();
  Bytes pinned = store_.pinned();
  EXPECT_GT(pinned, Bytes());
  store_.WarmUp();
  EXPECT_EQ(store_.pinned(), pinned);
  EXPECT_EQ(store_.used(), Bytes());
}

TEST_F(PinnedStoreTest, WarmUp_Refused_IsNoError) {
  driver_.PlanFault(Fault{.call = Call::kHostAlloc, .for_good = true});
  store_.WarmUp();
  EXPECT_EQ(store_.pinned(), Bytes());
  driver_.ClearFault();
  EXPECT_TRUE(store_.Take(PageCount(1)).ok());
}

TEST_F(PinnedStoreTest, Trim_SlabInUse_StaysAndIdleOnesGo) {
  auto first = store_.Take(PageCount(32));   // one slab
  auto second = store_.Take(PageCount(32));  // another
  ASSERT_EQ(driver_.host_memory(), kPageBytes * 64);
  std::vector<RamSlot> keep = {second->back()};
  second->pop_back();
  store_.Return(*first);
  store_.Return(*second);
  store_.Trim();
  EXPECT_EQ(driver_.host_memory(), kPageBytes * 32);
  store_.Return(keep);
  store_.Trim();
  EXPECT_EQ(driver_.host_memory(), Bytes());
  EXPECT_EQ(store_.peak_used(), kPageBytes * 64);
  EXPECT_TRUE(store_.Take(PageCount(100)).ok());
}

TEST_F(PinnedStoreTest, Trim_UnpinFails_TheSlabStaysUsable) {
  store_.Return(*store_.Take(PageCount(4)));
  driver_.PlanFault(Fault{.call = Call::kHostFree});
  store_.Trim();
  EXPECT_EQ(store_.pinned(), driver_.host_memory());
  EXPECT_TRUE(store_.Take(PageCount(100)).ok());
}

TEST(CopyRunsTest, SlotsSideBySide_AreOneCopy_AndAnErrorEndsIt) {
  std::vector<char> ram(kPageBytes.count() * 8);
  std::vector<RamSlot> slots;
  for (uint64_t slot : {5, 6, 2, 3, 4, 0, 7}) slots.push_back(RamSlot{&ram[kPageBytes.count() * slot]});
  const PageRun pages{100, PageCount(slots.size())};
  std::vector<PageRun> parts;
  std::vector<void*> memory;
  auto note = [&](PageRun part, void* at) {
    parts.push_back(part);
    memory.push_back(at);
    return absl::OkStatus();
  };
  EXPECT_TRUE(CopyRuns(pages, slots, note).ok());
  EXPECT_THAT(parts, ElementsAre(PageRun{100, PageCount(2)}, PageRun{102, PageCount(3)},
                                 PageRun{105, PageCount(1)}, PageRun{106, PageCount(1)}));
  EXPECT_THAT(memory, ElementsAre(slots[0].memory, slots[2].memory, slots[5].memory, slots[6].memory));
  int calls = 0;
  auto fail_second = [&](PageRun, void*) {
    return ++calls == 2 ? absl::InternalError("second") : absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsInternal(CopyRuns(pages, slots, fail_second)));
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace weir
