// The test build's side of allocator/base/safeguards.h.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

#include "allocator/base/check.h"
#include "allocator/base/safeguards.h"

namespace weir {
namespace {

constexpr int kNone = -1;

int Chosen() {
  const char* name = std::getenv("TEST_WITHOUT");
  if (name == nullptr) return kNone;
#define WEIR_SAFEGUARD_CHOICE(known, rule) \
  if (std::string_view(name) == #known) return static_cast<int>(Safeguard::k##known);
  WEIR_SAFEGUARDS(WEIR_SAFEGUARD_CHOICE)
#undef WEIR_SAFEGUARD_CHOICE
  WEIR_CHECK(false) << "TEST_WITHOUT names no safeguard";
  return kNone;
}

// A wait that nobody ends any more is noticed too: no test here takes a tenth of this.
class HangWatch : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo&) override {
    std::signal(
        SIGALRM, +[](int) {
          constexpr char kText[] = "a test hangs\n";
          [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, kText, sizeof kText - 1);
          _exit(3);
        });
    alarm(6);
  }
  void OnTestEnd(const ::testing::TestInfo&) override { alarm(0); }
};
const bool watched = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new HangWatch);
  return true;
}();

}  // namespace

bool Without(Safeguard safeguard) {
  static const int chosen = Chosen();
  return static_cast<int>(safeguard) == chosen;
}

}  // namespace weir
