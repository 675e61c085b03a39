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

// Capture is refused, so nothing ever captures: the questions about it have their documented answers.
TEST_F(Device, Stream_ThatDoesNotCapture_SaysSo) {
  CUstream stream = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  ASSERT_CU(CU(cuStreamIsCapturing)(stream, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_CU(CU(cuStreamDestroy)(stream));
}

// cuThreadExchangeStreamCaptureMode: gives the thread's mode and sets another; GLOBAL at first.
TEST_F(Device, CaptureMode_IsExchanged) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_CU(CU(cuThreadExchangeStreamCaptureMode)(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  ASSERT_CU(CU(cuThreadExchangeStreamCaptureMode)(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
}

}  // namespace
}  // namespace weir::conformance
