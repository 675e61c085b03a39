#include "allocator/base/check.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(CheckDeathTest, False_PrintsPlaceConditionAndText) {
  EXPECT_DEATH(WEIR_CHECK(1 + 1 == 3) << "sum of " << 2, "check_test.cc:[0-9]+: 1 \\+ 1 == 3 sum of 2");
}

TEST(Check, True_DoesNotEvaluateTheText) {
  int evaluated = 0;
  const auto text = [&evaluated] { return ++evaluated; };
  WEIR_CHECK(true) << text();
  EXPECT_EQ(evaluated, 0);
}

TEST(Check, InsideIfWithoutBraces_ElseBelongsToTheIf) {
  bool reached = false;
  if (false)
    WEIR_CHECK(false);
  else
    reached = true;
  EXPECT_TRUE(reached);
}

TEST(DCheck, ByBuildType_EvaluatesOnlyInDebug) {
  int evaluated = 0;
  const auto condition = [&evaluated] { return ++evaluated > 0; };
  WEIR_DCHECK(condition());
  WEIR_DCHECK_SLOW(condition());
#ifdef NDEBUG
  EXPECT_EQ(evaluated, 0);
#else
  EXPECT_EQ(evaluated, 2);
#endif
}

}  // namespace
}  // namespace weir
