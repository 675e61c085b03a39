// What the emulated GPU does not do it refuses, by the code that CUDA has for it.
#include "tests/conformance/not_emulated.h"

namespace weir::conformance {
namespace {

class NotEmulatedTest : public Device, public ::testing::WithParamInterface<NotEmulated> {};

TEST_P(NotEmulatedTest, Attempt_OnTheEmulatedGpu_IsNotSupported) {
  if (!OnEmulator()) GTEST_SKIP() << "a real GPU";
  EXPECT_EQ(GetParam().attempt(), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_CU(CU(cuCtxSynchronize)());
}

INSTANTIATE_TEST_SUITE_P(Each, NotEmulatedTest, ::testing::ValuesIn(AllNotEmulated()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weir::conformance
