#include "offload/host_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace weir {
namespace {

// A root folder with the files that the machine of a test has.
class HostMemoryTest : public ::testing::Test {
 protected:
  HostMemoryTest() { Write("proc/meminfo", "MemTotal: 200 kB\nMemAvailable:    1000 kB\n"); }
  ~HostMemoryTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  Bytes Available() {
    absl::StatusOr<HostMemory> memory = AvailableHostMemory(root_.string());
    EXPECT_TRUE(memory.ok()) << memory.status();
    limited_by_ = memory->limited_by;
    return memory->available;
  }

  const std::filesystem::path root_ = std::filesystem::path(::testing::TempDir()) /
                                      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::string limited_by_;
};

TEST_F(HostMemoryTest, Available_NoCgroup_IsMemAvailable) {
  EXPECT_EQ(Available(), KiB(1000));
  EXPECT_EQ(limited_by_, "MemAvailable");
}

TEST_F(HostMemoryTest, Available_NoMeminfo_IsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(AvailableHostMemory((root_ / "nowhere").string()).status()));
}

TEST_F(HostMemoryTest, Available_CgroupOfTheProcess_IsLimitLessUsageWithoutCache) {
  Write("proc/self/cgroup", "0::/job\n");
  Write("sys/fs/cgroup/job/memory.max", "500000\n");
  Write("sys/fs/cgroup/job/memory.current", "300000\n");
  Write("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 100000\n");
  EXPECT_EQ(Available(), Bytes(500000 - (300000 - 100000)));
  EXPECT_EQ(limited_by_, "cgroup memory.max");
}

TEST_F(HostMemoryTest, Available_ParentGroupIsTighter_IsTheParents) {
  Write("proc/self/cgroup", "0::/slice/job\n");
  Write("sys/fs/cgroup/slice/job/memory.max", "max\n");
  Write("sys/fs/cgroup/slice/job/memory.current", "100\n");
  Write("sys/fs/cgroup/slice/memory.max", "7000\n");
  Write("sys/fs/cgroup/slice/memory.current", "2000\n");
  EXPECT_EQ(Available(), Bytes(5000));
}

TEST_F(HostMemoryTest, Available_MoreUsedThanTheLimit_IsZero) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "1000\n");
  Write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(Available(), Bytes());
}

TEST_F(HostMemoryTest, Available_VersionOneHierarchy_IsRead) {
  Write("proc/self/cgroup", "5:cpu,memory:/docker/abc\n");
  Write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9000\n");
  Write("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "4000\n");
  EXPECT_EQ(Available(), Bytes(5000));
}

// C80: at memory.high the kernel throttles what does not give memory back.
TEST_F(HostMemoryTest, Available_HighIsBelowMax_IsTheLimit) {
  Write("proc/self/cgroup", "0::/job\n");
  Write("sys/fs/cgroup/job/memory.max", "9000\n");
  Write("sys/fs/cgroup/job/memory.high", "6000\n");
  Write("sys/fs/cgroup/job/memory.current", "1000\n");
  EXPECT_EQ(Available(), Bytes(5000));
  EXPECT_EQ(limited_by_, "cgroup memory.high");
}

TEST_F(HostMemoryTest, Available_HighOfAParentIsTighter_IsTheParents) {
  Write("proc/self/cgroup", "0::/slice/pod/job\n");
  Write("sys/fs/cgroup/slice/pod/job/memory.max", "900000\n");
  Write("sys/fs/cgroup/slice/pod/job/memory.high", "max\n");
  Write("sys/fs/cgroup/slice/pod/job/memory.current", "100\n");
  Write("sys/fs/cgroup/slice/memory.max", "max\n");
  Write("sys/fs/cgroup/slice/memory.high", "50000\n");
  Write("sys/fs/cgroup/slice/memory.current", "40000\n");
  Write("sys/fs/cgroup/slice/memory.stat", "inactive_file 5000\n");
  EXPECT_EQ(Available(), Bytes(50000 - (40000 - 5000)));
}

// C80: the usual tools show the host's memory, and the limit is that of a group above the container's.
TEST_F(HostMemoryTest, Available_VersionOneInherited_IsTheTightestAbove) {
  Write("proc/self/cgroup", "5:memory:/docker/abc\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "4000\n");
  Write("sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit 10000\ntotal_inactive_file 1000\n");
  EXPECT_EQ(Available(), Bytes(10000 - (4000 - 1000)));
}

TEST_F(HostMemoryTest, Available_VersionOneAndTwoAtOnce_TheTighterCounts) {
  Write("proc/self/cgroup", "5:memory:/job\n0::/job\n");
  Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9000\n");
  Write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "0\n");
  Write("sys/fs/cgroup/job/memory.max", "8000\n");
  Write("sys/fs/cgroup/job/memory.current", "0\n");
  EXPECT_EQ(Available(), Bytes(8000));
}

// In a container the group's path is the host's, and only the root of the hierarchy is visible.
TEST_F(HostMemoryTest, Available_GroupNotVisible_FallsBackToTheRootOfTheHierarchy) {
  Write("proc/self/cgroup", "0::/kubepods/pod1/abc\n");
  Write("sys/fs/cgroup/memory.max", "8000\n");
  Write("sys/fs/cgroup/memory.current", "1000\n");
  EXPECT_EQ(Available(), Bytes(7000));
}

TEST(DefaultRamBudgetTest, Ranks_ShareHalf) {
  EXPECT_EQ(DefaultRamBudget(GiB(64), 1), GiB(32));
  EXPECT_EQ(DefaultRamBudget(GiB(64), 4), GiB(8));
  EXPECT_EQ(DefaultRamBudget(GiB(64), 0), GiB(32));
}

}  // namespace
}  // namespace weir
