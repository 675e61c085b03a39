// Rules of streams, events and host functions.
#include <atomic>
#include <thread>

#include "tests/emulated_gpu/driver_under_test.h"

namespace weir::emulated {
namespace {

class Streams : public EmulatedDevice {};

// A host function that waits until the test lets it go.
struct Gate {
  std::atomic<bool> open{false}, passed{false};
  static void Wait(void* gate) {
    auto* self = static_cast<Gate*>(gate);
    while (!self->open) std::this_thread::yield();
    self->passed = true;
  }
};

TEST_F(Streams, Query_WhileAHostFunctionRuns_IsNotReady) {
  const CUstream stream = NewStream();
  Gate gate;
  ASSERT_EQ(CU(cuLaunchHostFunc)(stream, Gate::Wait, &gate), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamQuery)(stream), CUDA_ERROR_NOT_READY);
  gate.open = true;
  EXPECT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_TRUE(gate.passed);
  EXPECT_EQ(CU(cuStreamQuery)(stream), CUDA_SUCCESS);
}

TEST_F(Streams, Event_RecordedAfterAHostFunction_WaitsForItOnAnotherStreamToo) {
  const CUstream first = NewStream(), second = NewStream();
  const CUevent event = NewEvent();
  Gate gate;
  ASSERT_EQ(CU(cuLaunchHostFunc)(first, Gate::Wait, &gate), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventRecord)(event, first), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventQuery)(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(CU(cuStreamQuery)(second), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamWaitEvent)(second, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamQuery)(second), CUDA_ERROR_NOT_READY);
  gate.open = true;
  EXPECT_EQ(CU(cuStreamSynchronize)(second), CUDA_SUCCESS);
  EXPECT_TRUE(gate.passed);
}

TEST_F(Streams, Event_NeverRecorded_IsComplete) { EXPECT_EQ(CU(cuEventQuery)(NewEvent()), CUDA_SUCCESS); }

TEST_F(Streams, ElapsedTime_GrowsInTheOrderOfTheRecords) {
  const CUevent start = NewEvent(CU_EVENT_DEFAULT), end = NewEvent(CU_EVENT_DEFAULT);
  ASSERT_EQ(CU(cuEventRecord)(start, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventRecord)(end, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventSynchronize)(end), CUDA_SUCCESS);
  float forward = -1, backward = 1;
  ASSERT_EQ(CU(cuEventElapsedTime)(&forward, start, end), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventElapsedTime)(&backward, end, start), CUDA_SUCCESS);
  EXPECT_GE(forward, 0);
  EXPECT_EQ(backward, -forward);
}

TEST_F(Streams, ElapsedTime_OfAnEventWithoutTiming_IsInvalid) {
  const CUevent timed = NewEvent(CU_EVENT_DEFAULT), untimed = NewEvent();
  ASSERT_EQ(CU(cuEventRecord)(timed, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventRecord)(untimed, nullptr), CUDA_SUCCESS);
  float milliseconds = 0;
  EXPECT_EQ(CU(cuEventElapsedTime)(&milliseconds, timed, untimed), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuEventElapsedTime)(&milliseconds, timed, NewEvent(CU_EVENT_DEFAULT)),
            CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Streams, DeadHandles_AreReportedAndRefused) {
  const CUstream stream = NewStream();
  const CUevent event = NewEvent(CU_EVENT_DEFAULT);
  ASSERT_EQ(CU(cuStreamDestroy)(stream), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventDestroy)(event), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamQuery)(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuEventRecord)(event, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuStreamDestroy)(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(NewReports(), 3u);
}

TEST_F(Streams, HandlesThatAreLeft_AreCounted) {
  const WeirEmulatedCounters before = ReadCounters();
  const CUstream stream = NewStream();
  const CUevent event = NewEvent(CU_EVENT_DEFAULT);
  EXPECT_EQ(ReadCounters().live_streams, before.live_streams + 1);
  EXPECT_EQ(ReadCounters().live_events, before.live_events + 1);
  ASSERT_EQ(CU(cuStreamDestroy)(stream), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventDestroy)(event), CUDA_SUCCESS);
  EXPECT_EQ(ReadCounters().live_streams, before.live_streams);
  EXPECT_EQ(ReadCounters().live_events, before.live_events);
}

TEST_F(Streams, Priority_OutOfRange_IsClamped) {
  CUstream stream = nullptr;
  ASSERT_EQ(CU(cuStreamCreateWithPriority)(&stream, CU_STREAM_NON_BLOCKING, -100), CUDA_SUCCESS);
  int least = 0, greatest = 0, priority = 0;
  ASSERT_EQ(CU(cuCtxGetStreamPriorityRange)(&least, &greatest), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamGetPriority)(stream, &priority), CUDA_SUCCESS);
  EXPECT_EQ(priority, greatest);
}

TEST_F(Streams, CallWithoutContext_IsInvalidContext) {
  CUresult status = CUDA_SUCCESS;
  std::thread([&] {
    CUstream stream = nullptr;
    status = CU(cuStreamCreate)(&stream, 0);
  }).join();
  EXPECT_EQ(status, CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
}  // namespace weir::emulated
