// Random schedules: a correct program gives the bytes of its reference whatever the laziness, and is never reported; without
// one wait that mattered, it is. WEIR_FUZZ_PROGRAMS programs (50 by default) from WEIR_FUZZ_SEED (1).
#include <cstdlib>
#include <iostream>

#include "tests/emulated_gpu/driver_under_test.h"
#include "tests/emulated_gpu/schedule_machine.h"

namespace weir::emulated {
namespace {

constexpr uint64_t kLaziness[] = {0, 1, 2};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class ScheduleFuzz : public EmulatedDevice {
 protected:
  void SetUp() override {
    setenv("WEIR_EMULATED_REPORTS", "count", 1);  // before the emulator is loaded
    EmulatedDevice::SetUp();
  }

  const uint64_t programs_ = FromEnvironment("WEIR_FUZZ_PROGRAMS", 50);
  const uint64_t first_ = FromEnvironment("WEIR_FUZZ_SEED", 1);
};

bool IsWrong(const Program& program, uint64_t laziness) {
  const Outcome outcome = RunOnEmulator(program, laziness);
  return outcome.reports != 0 || outcome.buffers != Reference(program);
}

Program Without(const Program& program, size_t line) {
  Program mutant = program;
  mutant.erase(mutant.begin() + static_cast<ptrdiff_t>(line));
  return mutant;
}

TEST_F(ScheduleFuzz, CorrectPrograms_GiveTheirBytesAndNoReport) {
  for (uint64_t seed = first_; seed < first_ + programs_; ++seed) {
    const Program program = RandomProgram(seed);
    ASSERT_TRUE(IsOrdered(program)) << "seed " << seed;
    for (const uint64_t laziness : kLaziness) {
      if (!IsWrong(program, laziness)) continue;
      const Program small =
          Shrink(program, [&](const Program& p) { return IsOrdered(p) && IsWrong(p, laziness); });
      const Outcome outcome = RunOnEmulator(small, laziness);
      FAIL() << "seed " << seed << ", laziness " << laziness << ", " << outcome.reports << " reports:\n"
             << Text(small);
    }
  }
}

TEST_F(ScheduleFuzz, AWaitThatMattered_IsMissed) {
  uint64_t mattered = 0, reported = 0;
  Program missed;
  for (uint64_t seed = first_; seed < first_ + programs_; ++seed) {
    const Program program = RandomProgram(seed);
    for (size_t i = 0; i < program.size(); ++i) {
      if (!IsWait(program[i])) continue;
      const Program mutant = Without(program, i);
      const uint64_t laziness = kLaziness[i % std::size(kLaziness)];
      const bool is_reported = RunOnEmulator(mutant, laziness).reports != 0;
      if (IsOrdered(mutant)) {
        EXPECT_FALSE(is_reported) << "seed " << seed << " without line " << i << ", which nothing needs:\n"
                                  << Text(program);
        continue;
      }
      ++mattered;
      reported += is_reported ? 1 : 0;
      if (is_reported || !missed.empty()) continue;
      missed = Shrink(
          mutant, [&](const Program& p) { return !IsOrdered(p) && RunOnEmulator(p, laziness).reports == 0; });
    }
  }
  std::cout << "waits that mattered: " << mattered << ", reported without them: " << reported << "\n";
  EXPECT_GE(mattered, 2 * programs_);  // the programs are about something
  EXPECT_GE(reported * 100, mattered * 99) << "not reported:\n" << Text(missed);
}

TEST_F(ScheduleFuzz, AFailingProgram_ShrinksToAFewLines) {
  for (uint64_t seed = first_; seed < first_ + 10; ++seed) {
    const Program program = RandomProgram(seed);
    for (size_t i = 0; i < program.size(); ++i) {
      if (!IsWait(program[i]) || IsOrdered(Without(program, i))) continue;
      const Program small = Shrink(Without(program, i), [&](const Program& p) {
        return !IsOrdered(p) && RunOnEmulator(p, 0).reports != 0;
      });
      EXPECT_LE(small.size(), 20u) << Text(small);
      EXPECT_GE(small.size(), 2u);
      break;
    }
  }
}

}  // namespace
}  // namespace weir::emulated
