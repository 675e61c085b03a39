// The budget of pinned RAM: shared by the devices of a process, and by processes through the ledger.
#include "offload/ram_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "offload/pinned_store.h"
#include "tests/fakes/fake_driver.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kPage = kPageBytes;

// Another process that does what it is told, one step at a time.
class Process {
 public:
  explicit Process(const std::function<int(int command)>& step) {
    EXPECT_EQ(pipe(to_), 0);
    EXPECT_EQ(pipe(from_), 0);
    pid_ = fork();
    if (pid_ != 0) return;
    close(to_[1]);
    for (int command; read(to_[0], &command, sizeof command) == sizeof command;) {
      const int answer = step(command);
      if (write(from_[1], &answer, sizeof answer) < 0) break;
    }
    _exit(0);
  }
  ~Process() { Kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int Ask(int command) {
    int answer = -1;
    EXPECT_EQ(write(to_[1], &command, sizeof command), static_cast<ssize_t>(sizeof command));
    EXPECT_EQ(read(from_[0], &answer, sizeof answer), static_cast<ssize_t>(sizeof answer));
    return answer;
  }
  void Kill() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      for (int end : {to_[0], to_[1], from_[0], from_[1]}) close(end);
    }
    pid_ = -1;
  }

 private:
  int to_[2], from_[2];
  pid_t pid_ = -1;
};

class RamLedgerTest : public ::testing::Test {
 protected:
  RamLedgerTest() { std::filesystem::create_directories(folder_); }
  ~RamLedgerTest() override { std::filesystem::remove_all(folder_); }
  size_t Files() {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  // A process with a budget of that kind: kLimit, kLeft and kLeave, or takes that many pages (1), or gives them back.
  enum Command { kLimit = 1000, kLeft, kLeave };
  std::function<int(int)> Sharer(RamLedger::Kind kind, PageCount most, int ranks = 1) {
    return [=, this, budget = std::shared_ptr<RamBudget>()](int command) mutable {
      if (budget == nullptr) {
        auto ledger = RamLedger::Open(kind, "", folder_.string());
        budget = std::make_shared<RamBudget>(RamBudget::Config{.most = most.bytes(), .local_ranks = ranks},
                                             *std::move(ledger), kind);
      }
      if (command == kLimit) return static_cast<int>(budget->limit() / kPage);
      if (command == kLeft) return static_cast<int>(budget->left() / kPage);
      if (command == kLeave) budget->Leave();
      if (command < 0) budget->Return(kPage * static_cast<uint64_t>(-command));
      return command < 0 || command == kLeave
                 ? 1
                 : static_cast<int>(budget->Take(kPage * static_cast<uint64_t>(command)).ok());
    };
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      (std::to_string(getpid()) + ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(RamLedgerTest, Node_ProcessesTogetherPinNoMoreThanTheBudget) {
  Process first(Sharer(RamLedger::Kind::kNode, PageCount(10)));
  Process second(Sharer(RamLedger::Kind::kNode, PageCount(10)));
  EXPECT_EQ(first.Ask(7), 1);
  EXPECT_EQ(second.Ask(kLeft), 3);
  EXPECT_EQ(second.Ask(4), 0);
  EXPECT_EQ(second.Ask(3), 1);
  EXPECT_EQ(first.Ask(1), 0);
  EXPECT_EQ(second.Ask(-3), 1);
  EXPECT_EQ(first.Ask(3), 1);
}

TEST_F(RamLedgerTest, KilledProcess_WhatItHadPinnedIsFreeAgain) {
  Process first(Sharer(RamLedger::Kind::kNode, PageCount(10)));
  Process second(Sharer(RamLedger::Kind::kNode, PageCount(10)));
  EXPECT_EQ(first.Ask(8), 1);
  EXPECT_EQ(second.Ask(5), 0);
  first.Kill();
  EXPECT_EQ(second.Ask(10), 1);
}

// Each plans its part of what one alone would plan.
TEST_F(RamLedgerTest, Auto_PartsOfRanksAndProcessesNeverExceedOne) {
  for (int ranks : {1, 2}) {
    Process first(Sharer(RamLedger::Kind::kAuto, PageCount(12), ranks));
    EXPECT_EQ(first.Ask(kLimit), 12 / ranks);
    Process second(Sharer(RamLedger::Kind::kAuto, PageCount(12), ranks));
    EXPECT_EQ(second.Ask(kLimit), 6);
    EXPECT_EQ(first.Ask(kLimit), 6);
    EXPECT_EQ(first.Ask(7), 0);
    EXPECT_EQ(first.Ask(6), 1);
    EXPECT_EQ(second.Ask(6), 1);
  }
}

TEST_F(RamLedgerTest, Auto_OneTookAllBeforeTheOtherCame_NothingIsLeftForThat) {
  Process first(Sharer(RamLedger::Kind::kAuto, PageCount(12)));
  EXPECT_EQ(first.Ask(12), 1);
  Process second(Sharer(RamLedger::Kind::kAuto, PageCount(12)));
  EXPECT_EQ(second.Ask(1), 0);
  EXPECT_EQ(first.Ask(-4), 1);
  EXPECT_EQ(second.Ask(5), 0);
  EXPECT_EQ(second.Ask(4), 1);
}

TEST_F(RamLedgerTest, OtherKindAndScope_AreNotCounted) {
  Process node(Sharer(RamLedger::Kind::kNode, PageCount(10)));
  Process automatic(Sharer(RamLedger::Kind::kAuto, PageCount(10)));
  EXPECT_EQ(node.Ask(10), 1);
  EXPECT_EQ(automatic.Ask(10), 1);
  auto elsewhere = RamLedger::Open(RamLedger::Kind::kNode, "emulated", folder_.string());
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_EQ((*elsewhere)->Total().pinned, Bytes());
  EXPECT_EQ((*elsewhere)->Total().processes, 1);
}

TEST_F(RamLedgerTest, LastProcessLeaves_NoFileIsLeft) {
  Process first(Sharer(RamLedger::Kind::kNode, PageCount(10)));
  Process second(Sharer(RamLedger::Kind::kNode, PageCount(10)));
  EXPECT_EQ(first.Ask(1) + second.Ask(1), 2);
  EXPECT_EQ(first.Ask(kLeave), 1);
  EXPECT_EQ(Files(), 1u);
  EXPECT_EQ(second.Ask(kLeave), 1);
  EXPECT_EQ(Files(), 0u);
}

TEST_F(RamLedgerTest, FileOfAKilledProcess_IsRemovedWhenTheNextComes) {
  std::ofstream(folder_ / ("weir-ram-" + std::to_string(geteuid()) + "-old")) << "x";
  std::ofstream(folder_ / ("weir-ram-" + std::to_string(geteuid()) + "0")) << "another user's";
  ASSERT_TRUE(RamLedger::Open(RamLedger::Kind::kNode, "", folder_.string()).ok());
  EXPECT_EQ(Files(), 1u);
  EXPECT_TRUE(std::filesystem::exists(folder_ / ("weir-ram-" + std::to_string(geteuid()) + "0")));
}

TEST_F(RamLedgerTest, ForkedChildThatOutlivesItsParent_HoldsNothing) {
  int child_ready[2];
  ASSERT_EQ(pipe(child_ready), 0);
  Process first([&, step = Sharer(RamLedger::Kind::kNode, PageCount(10))](int command) mutable {
    const int answer = step(command);
    if (command == 10 && fork() == 0) {  // lives until the test's pipe is closed
      char byte;
      close(child_ready[1]);
      _exit(static_cast<int>(read(child_ready[0], &byte, 1)));
    }
    return answer;
  });
  EXPECT_EQ(first.Ask(10), 1);
  first.Kill();
  Process second(Sharer(RamLedger::Kind::kNode, PageCount(10)));
  EXPECT_EQ(second.Ask(10), 1);
  close(child_ready[0]);
  close(child_ready[1]);
}

TEST_F(RamLedgerTest, LinkInPlaceOfTheFile_IsRefused) {
  std::ofstream(folder_ / "target") << "precious";
  std::filesystem::create_symlink(folder_ / "target", folder_ / ("weir-ram-" + std::to_string(geteuid())));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(RamLedger::Open(RamLedger::Kind::kNode, "", folder_.string()).status()));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "target"), 8u);
}

TEST_F(RamLedgerTest, NoSharedMemory_IsRefused) {
  EXPECT_FALSE(RamLedger::Open(RamLedger::Kind::kNode, "", (folder_ / "nowhere").string()).ok());
}

// C77: what counts is what is pinned, by all devices of the process together.
TEST(RamBudgetTest, TwoStores_TogetherPinNoMoreThanTheBudget) {
  fakes::FakeDriver driver;
  ScopedContext context(driver, DeviceIndex{0});
  RamBudget budget({.most = kPage * 32, .several_stores = true});
  PinnedStore first(driver, budget), second(driver, budget);
  first.WarmUp();
  EXPECT_TRUE(first.Take(PageCount(20)).ok());
  EXPECT_FALSE(second.Take(PageCount(13)).ok());
  auto slots = second.Take(PageCount(12));
  ASSERT_TRUE(slots.ok()) << slots.status();
  EXPECT_EQ(driver.host_memory(), kPage * 32);
  absl::Status refused = first.Take(PageCount(1)).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("WEIR_RAM=64.00 MiB"));
  second.Return(*slots);
  second.Trim();
  EXPECT_EQ(first.room(), kPage * 12);
  EXPECT_TRUE(first.Take(PageCount(12)).ok());
}

TEST(RamBudgetTest, SystemRefuses_TheBudgetGetsItBack) {
  fakes::FakeDriver driver;
  ScopedContext context(driver, DeviceIndex{0});
  PinnedStore store(driver, kPage * 4);
  driver.SetHostLimit(Bytes());
  EXPECT_FALSE(store.Take(PageCount(4)).ok());
  driver.SetHostLimit(Bytes::Max());
  EXPECT_TRUE(store.Take(PageCount(4)).ok());
}

// C80: growth stops before the machine's memory, or the container's, ends.
TEST(RamBudgetTest, MachineHasLessLeftThanTheBudget_SaysWhatLimitsIt) {
  RamBudget budget({.most = GiB(64), .host = []() -> absl::StatusOr<HostMemory> {
                      return HostMemory{MiB(300), "cgroup memory.max"};
                    }});
  EXPECT_TRUE(budget.Take(MiB(100)).ok());
  absl::Status refused = budget.Take(MiB(200));
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("only 300.00 MiB of RAM are left (cgroup memory.max)"));
  EXPECT_EQ(budget.left(), GiB(64) - MiB(100));
}

}  // namespace
}  // namespace weir
