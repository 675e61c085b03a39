// Two threads in the ladder (R11): the youngest gives up, the elder goes on; nobody waits for ever.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/synchronization/notification.h"
#include "allocator/wait_scope.h"
#include "policies/ordered_policy.h"
#include "tests/offload/pager_fixture.h"

namespace weir {
namespace {

// Calls back when a thread begins to wait, without any lock held.
class WaitWatch {
 public:
  explicit WaitWatch(std::function<void()> on_wait) {
    function() = std::move(on_wait);
    WaitScope::SetHooks(WaitHooks{+[]() -> void* {
                                    function()();
                                    return nullptr;
                                  },
                                  +[](void*) {}});
  }
  ~WaitWatch() { WaitScope::SetHooks(WaitHooks{}); }

 private:
  static std::function<void()>& function() {
    static std::function<void()> on_wait;
    return on_wait;
  }
};

void Once(absl::Notification& notification) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (!notification.HasBeenNotified()) notification.Notify();
}

// A cap of eight pages.
class PagerThreadsTest : public ::testing::Test {
 protected:
  PagerFixture fixture_{PageCount(8), PageCount(64)};
  fakes::FakeDriver& driver_ = fixture_.driver;
  DeviceAllocator& device_ = *fixture_.device;
};

// Two ops hold half of the cap each and both want more.
TEST_F(PagerThreadsTest, Touch_BothHoldWhatTheOtherNeeds_TheYoungestFailsAndTheElderGoesOn) {
  Tensor elder_holds = fixture_.Make(kPageBytes * 3, 1), younger_holds = fixture_.Make(kPageBytes * 3, 2);
  Tensor elder_wants = fixture_.Make(kPageBytes * 4, 3), younger_wants = fixture_.Make(kPageBytes * 4, 4);
  absl::Notification younger_pinned, elder_waits;
  std::thread::id elder_id = std::this_thread::get_id();
  WaitWatch watch([&] {
    if (std::this_thread::get_id() == elder_id && younger_pinned.HasBeenNotified()) Once(elder_waits);
  });
  OpPins elder;
  elder.Enter("elder");
  ASSERT_TRUE(fixture_.Touch({&elder_holds}, elder).ok());
  std::thread thread([&] {
    OpPins younger;
    OpScope op(younger, "younger");
    ASSERT_TRUE(fixture_.Touch({&younger_holds}, younger, kStreamB).ok());
    younger_pinned.Notify();
    elder_waits.WaitForNotification();  // it has the turn, and waits for this op to end
    EXPECT_TRUE(absl::IsResourceExhausted(fixture_.Touch({&younger_wants}, younger, kStreamB)));
    EXPECT_EQ(fixture_.pins(younger_wants.at), 0u);
    fixture_.Check(younger_holds.at, younger_holds.size, 2, kStreamB);
  });
  younger_pinned.WaitForNotification();
  EXPECT_TRUE(fixture_.Touch({&elder_wants}, elder).ok());
  fixture_.Check(elder_wants.at, elder_wants.size, 3);
  thread.join();
  elder.Leave();
  fixture_.Use(younger_wants);
}

TEST_F(PagerThreadsTest, Touch_AnotherOpPinsTheRoom_WaitsUntilThatOpEnds) {
  Tensor held = fixture_.Make(kPageBytes * 6, 1), wanted = fixture_.Make(kPageBytes * 6, 2);
  absl::Notification pinned, waits;
  std::thread::id id = std::this_thread::get_id();
  WaitWatch watch([&] {
    if (std::this_thread::get_id() == id && pinned.HasBeenNotified()) Once(waits);
  });
  std::thread thread([&] {
    OpPins op;
    OpScope scope(op, "holder");
    ASSERT_TRUE(fixture_.Touch({&held}, op, kStreamB).ok());
    pinned.Notify();
    waits.WaitForNotification();
    fixture_.Check(held.at, held.size, 1, kStreamB);
  });
  pinned.WaitForNotification();
  fixture_.Use(wanted);
  thread.join();
  fixture_.Use(held);
}

// Least recently used, and tells when a thread looks for victims while nobody else works with pins.
class WatchedPolicy final : public Policy {
 public:
  std::string_view name() const override { return "watched"; }
  std::vector<size_t> PickVictims(const std::vector<Candidate>& candidates, PageCount needed) const override {
    on_pick();
    return LruPolicy().PickVictims(candidates, needed);
  }
  std::function<void()> on_pick;  // with the device's mutex held
};

// The elder wants a tensor and steps aside; now room appears, and the younger one fetches the same tensor.
TEST(PagerStepAsideTest, Touch_FetchedByAnotherWhileSteppingAside_IsNotFetchedTwice) {
  auto owned_policy = std::make_unique<WatchedPolicy>();
  WatchedPolicy& policy = *owned_policy;
  policy.on_pick = [] {};
  PagerFixture fixture(PageCount(8), PageCount(64), std::move(owned_policy));
  DeviceAllocator& device = *fixture.device;
  Tensor shared = fixture.Make(kLarge, 1);
  fixture.EvictByPressure(shared, kPageBytes * 8);
  Tensor elder_holds = fixture.Make(kLarge, 2), younger_holds = fixture.Make(kLarge, 3);
  DeviceAddr unseen = fixture.Allocate(kPageBytes * 4);  // cannot leave
  absl::Notification younger_pinned, elder_waits;
  const std::thread::id elder_id = std::this_thread::get_id();
  int waits_to_come = 0;  // of the elder's thread: one in the ladder, then the one in which it steps aside
  policy.on_pick = [&]() {
    if (std::this_thread::get_id() != elder_id) return;
    device.mutex().AssertHeld();
    waits_to_come = device.ActivePinnersLocked() == 0 ? 2 : 0;
  };
  WaitWatch watch([&] {
    if (std::this_thread::get_id() != elder_id) return;
    if (younger_pinned.HasBeenNotified()) Once(elder_waits);
    if (waits_to_come > 0 && --waits_to_come == 0) device.Free(unseen);
  });
  OpPins elder;
  elder.Enter("elder");
  ASSERT_TRUE(fixture.Touch({&elder_holds}, elder).ok());
  std::thread thread([&] {
    OpPins younger;
    OpScope op(younger, "younger");
    ASSERT_TRUE(fixture.Touch({&younger_holds}, younger, kStreamB).ok());
    younger_pinned.Notify();
    elder_waits.WaitForNotification();
    absl::Status status = fixture.Touch({&shared}, younger, kStreamB);
    EXPECT_TRUE(status.ok()) << status;
    fixture.Check(shared.at, kLarge, 1, kStreamB);
  });
  younger_pinned.WaitForNotification();
  absl::Status status = fixture.Touch({&shared}, elder);
  EXPECT_TRUE(status.ok()) << status;
  fixture.Check(shared.at, kLarge, 1);
  thread.join();
  elder.Leave();
  EXPECT_EQ(fixture.pager.Counters().fetches, 1u);
}

// Many rounds of the same conflict without any order between the threads: one of the two always gets through.
TEST_F(PagerThreadsTest, Touch_TwoThreadsInConflict_OneAlwaysGetsThrough) {
  constexpr int kRounds = 200;
  Tensor holds[2], wants[2];
  for (int i = 0; i < 2; ++i) {
    holds[i] = fixture_.Make(kPageBytes * 3, static_cast<uint32_t>(1 + i));
    wants[i] = fixture_.Make(kPageBytes * 4, static_cast<uint32_t>(3 + i));
  }
  driver_.FinishEverything();
  std::atomic<int> arrived{0}, failed[kRounds] = {};
  auto work = [&](int me) {
    Stream stream(static_cast<uintptr_t>(10 + me));
    OpPins pins;
    for (int round = 0; round < kRounds; ++round) {
      ++arrived;
      while (arrived < 2 * (round + 1)) std::this_thread::yield();
      OpScope op(pins, "op");
      if (!fixture_.Touch({&holds[me]}, pins, stream).ok() ||
          !fixture_.Touch({&wants[me]}, pins, stream).ok()) {
        ++failed[round];
        continue;
      }
      fixture_.Check(wants[me].at, wants[me].size, wants[me].pattern, stream);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (int round = 0; round < kRounds; ++round) EXPECT_LT(failed[round], 2) << "round " << round;
}

}  // namespace
}  // namespace weir
