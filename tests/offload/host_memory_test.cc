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
