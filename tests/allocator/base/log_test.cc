#include "allocator/base/log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace weir {
namespace {

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class LogTest : public testing::Test {
 protected:
  LogTest() {
    char pattern[] = "/tmp/weir_log_test.XXXXXX";
    directory_ = mkdtemp(pattern);
  }
  ~LogTest() override {
    EXPECT_TRUE(StartLog({}, "0").ok());
    [[maybe_unused]] const int rc = system(("rm -r " + directory_).c_str());
  }
  std::string directory_;
};

TEST_F(LogTest, BelowLevel_WritesNothing) {
  ASSERT_TRUE(StartLog({LogLevel::kInfo, directory_ + "/log"}, "0").ok());
  Log(LogLevel::kDebug, "hidden");
  Log(LogLevel::kInfo, "shown ", 3);
  EXPECT_EQ(Contents(directory_ + "/log"), "weir: shown 3\n");
}

TEST_F(LogTest, LineBreaksInMessage_StayOneLine) {
  ASSERT_TRUE(StartLog({LogLevel::kWarn, directory_ + "/log"}, "0").ok());
  Log(LogLevel::kError, "first\nsecond");
  EXPECT_EQ(Contents(directory_ + "/log"), "weir: first second\n");
}

TEST_F(LogTest, FileInMissingFolder_SaysSoAndGoesOn) {
  const absl::Status status = StartLog({LogLevel::kWarn, directory_ + "/none/log"}, "0");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find(directory_ + "/none/log"), absl::string_view::npos);
  testing::internal::CaptureStderr();
  Log(LogLevel::kError, "still here");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "weir: still here\n");
}

TEST_F(LogTest, ForkedChildWithPidInName_WritesItsOwnFile) {
  ASSERT_TRUE(StartLog({LogLevel::kWarn, directory_ + "/log.%p"}, "0").ok());
  Log(LogLevel::kWarn, "parent");
  const pid_t child = fork();
  if (child == 0) {
    Log(LogLevel::kWarn, "child");
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(Contents(directory_ + "/log." + std::to_string(getpid())), "weir: parent\n");
  EXPECT_EQ(Contents(directory_ + "/log." + std::to_string(child)), "weir: child\n");
}

TEST_F(LogTest, ManyThreads_LinesStayWhole) {
  ASSERT_TRUE(StartLog({LogLevel::kWarn, directory_ + "/log"}, "0").ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 250; ++i) Log(LogLevel::kWarn, "the whole line");
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::ifstream file(directory_ + "/log");
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) EXPECT_EQ(line, "weir: the whole line");
  EXPECT_EQ(lines, 1000);
}

TEST(Log_ExpandLogFile, EveryPercentForm_Replaced) {
  EXPECT_EQ(ExpandLogFile("/tmp/%h-%r-%p.log", 17, "node", "3"), "/tmp/node-3-17.log");
  EXPECT_EQ(ExpandLogFile("100%%%x%", 17, "node", "3"), "100%%x%");
}

}  // namespace
}  // namespace weir
