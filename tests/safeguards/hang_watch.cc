// Ends the test program when a test hangs: a wait that nobody ends any more is noticed too.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace {

// No test here takes a tenth of this.
constexpr unsigned kSeconds = 6;

class HangWatch : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo&) override {
    std::signal(
        SIGALRM, +[](int) {
          constexpr char kText[] = "a test hangs\n";
          [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, kText, sizeof kText - 1);
          _exit(3);
        });
    alarm(kSeconds);
  }
  void OnTestEnd(const ::testing::TestInfo&) override { alarm(0); }
};

const bool watched = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new HangWatch);
  return true;
}();

}  // namespace
