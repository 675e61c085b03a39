// Events: driver API documentation, "Event Management" and cuStreamWaitEvent.
#include <thread>

#include "tests/conformance/order_fixture.h"

namespace weir::conformance {
namespace {

class Events : public Order {
 protected:
  static CUresult Query(CUevent event) { return CU(cuEventQuery)(event); }
};

// cuEventQuery: "If cuEventRecord() has not been called on hEvent" the answer is CUDA_SUCCESS.
TEST_F(Events, NeverRecorded_IsComplete) {
  const CUevent event = NewEvent();
  EXPECT_CU(Query(event));
  EXPECT_CU(CU(cuEventSynchronize)(event));
}

// cuEventRecord captures the work enqueued before; later work does not count.
TEST_F(Events, Record_CoversTheWorkBeforeItAlone) {
  const CUstream stream = NewStream();
  const CUevent before = NewEvent(), after = NewEvent();
  ASSERT_CU(CU(cuEventRecord)(before, stream));
  Gate& gate = Held(stream);
  ASSERT_CU(CU(cuEventRecord)(after, stream));
  EXPECT_CU(CU(cuEventSynchronize)(before));
  EXPECT_EQ(Query(after), CUDA_ERROR_NOT_READY);
  gate.Open();
  EXPECT_CU(CU(cuEventSynchronize)(after));
  EXPECT_TRUE(gate.Passed());
}

// cuEventRecord: "cuEventQuery … will then examine the status of this new captured state"
TEST_F(Events, RecordedAgain_TellsOfTheLastRecord) {
  const CUstream held = NewStream(), free = NewStream();
  const CUevent event = NewEvent();
  Gate& gate = Held(held);
  ASSERT_CU(CU(cuEventRecord)(event, held));
  EXPECT_EQ(Query(event), CUDA_ERROR_NOT_READY);
  ASSERT_CU(CU(cuEventRecord)(event, free));
  EXPECT_CU(CU(cuEventSynchronize)(event));
  EXPECT_CU(Query(event));
  EXPECT_FALSE(gate.Passed());
  ASSERT_CU(CU(cuEventRecord)(event, held));
  EXPECT_EQ(Query(event), CUDA_ERROR_NOT_READY);
}

// cuStreamWaitEvent: later work of the stream waits; work before it and the host do not.
TEST_F(Events, Wait_HoldsLaterWorkOfTheStream) {
  const CUstream held = NewStream(), waiting = NewStream();
  const CUevent event = NewEvent(), early = NewEvent();
  Gate& gate = Held(held);
  ASSERT_CU(CU(cuEventRecord)(event, held));
  ASSERT_CU(CU(cuEventRecord)(early, waiting));
  ASSERT_CU(CU(cuStreamWaitEvent)(waiting, event, 0));
  bool passed_before = false;
  Call(waiting, [&] { passed_before = gate.Passed(); });
  EXPECT_CU(CU(cuEventSynchronize)(early));
  EXPECT_TRUE(Unfinished(waiting));
  gate.Open();
  ASSERT_CU(CU(cuStreamSynchronize)(waiting));
  EXPECT_TRUE(passed_before);
}

// cuEventRecord: "Note that … cuStreamWaitEvent will … not be affected by subsequent calls to cuEventRecord".
TEST_F(Events, Wait_IsForTheRecordAtTheTimeOfTheCall) {
  const CUstream held = NewStream(), waiting = NewStream(), free = NewStream();
  const CUevent event = NewEvent();
  Gate& gate = Held(held);
  ASSERT_CU(CU(cuEventRecord)(event, held));
  ASSERT_CU(CU(cuStreamWaitEvent)(waiting, event, 0));
  ASSERT_CU(CU(cuEventRecord)(event, free));  // completes at once, and must not release the waiting stream
  EXPECT_CU(CU(cuEventSynchronize)(event));
  bool passed_before = false;
  Call(waiting, [&] { passed_before = gate.Passed(); });
  EXPECT_TRUE(Unfinished(waiting));
  gate.Open();
  ASSERT_CU(CU(cuStreamSynchronize)(waiting));
  EXPECT_TRUE(passed_before);
}

TEST_F(Events, Wait_BeforeALaterRecord_DoesNotWaitForIt) {
  const CUstream held = NewStream(), waiting = NewStream();
  const CUevent event = NewEvent();
  ASSERT_CU(CU(cuEventRecord)(event, waiting));
  ASSERT_CU(CU(cuStreamWaitEvent)(waiting, event, 0));
  Held(held);
  ASSERT_CU(CU(cuEventRecord)(event, held));
  EXPECT_CU(CU(cuStreamSynchronize)(waiting));
}

// cuStreamWaitEvent on an event that was never recorded is a no-operation.
TEST_F(Events, Wait_ForAnEventNeverRecorded_IsNothing) {
  const CUstream stream = NewStream();
  ASSERT_CU(CU(cuStreamWaitEvent)(stream, NewEvent(), 0));
  EXPECT_CU(CU(cuStreamSynchronize)(stream));
}

// Waits chain: what the third stream does comes after what the first did.
TEST_F(Events, Waits_AreTransitive) {
  const CUstream first = NewStream(), second = NewStream(), third = NewStream();
  const CUevent one = NewEvent(), two = NewEvent();
  Gate& gate = Held(first);
  ASSERT_CU(CU(cuEventRecord)(one, first));
  ASSERT_CU(CU(cuStreamWaitEvent)(second, one, 0));
  ASSERT_CU(CU(cuEventRecord)(two, second));
  ASSERT_CU(CU(cuStreamWaitEvent)(third, two, 0));
  EXPECT_EQ(Query(two), CUDA_ERROR_NOT_READY);
  EXPECT_TRUE(Unfinished(third));
  gate.Open();
  ASSERT_CU(CU(cuStreamSynchronize)(third));
  EXPECT_TRUE(gate.Passed());
}

// cuEventDestroy: an event "may be destroyed before it is complete"; a wait that was enqueued still holds.
TEST_F(Events, Destroy_WhileWaitedFor_KeepsTheWait) {
  const CUstream held = NewStream(), waiting = NewStream();
  CUevent event = nullptr;
  ASSERT_CU(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  Gate& gate = Held(held);
  ASSERT_CU(CU(cuEventRecord)(event, held));
  ASSERT_CU(CU(cuStreamWaitEvent)(waiting, event, 0));
  ASSERT_CU(CU(cuEventDestroy)(event));
  bool passed_before = false;
  Call(waiting, [&] { passed_before = gate.Passed(); });
  EXPECT_TRUE(Unfinished(waiting));
  gate.Open();
  ASSERT_CU(CU(cuStreamSynchronize)(waiting));
  EXPECT_TRUE(passed_before);
}

// An event recorded in the legacy stream comes after the work of blocking streams, as anything there.
TEST_F(Events, RecordInTheLegacyStream_CoversBlockingStreams) {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT);
  const CUevent event = NewEvent();
  Gate& gate = Held(blocking);
  ASSERT_CU(CU(cuEventRecord)(event, nullptr));
  EXPECT_EQ(Query(event), CUDA_ERROR_NOT_READY);
  gate.Open();
  ASSERT_CU(CU(cuEventSynchronize)(event));
  EXPECT_TRUE(gate.Passed());
}

// A second thread may query and wait for events of the first.
TEST_F(Events, SecondThread_MaySynchronize) {
  const CUstream stream = NewStream();
  const CUevent event = NewEvent();
  Gate& gate = Held(stream);
  ASSERT_CU(CU(cuEventRecord)(event, stream));
  CUcontext context = nullptr;
  ASSERT_CU(CU(cuCtxGetCurrent)(&context));
  std::thread waiter([&] {
    ASSERT_CU(CU(cuCtxSetCurrent)(context));
    EXPECT_EQ(CU(cuEventQuery)(event), CUDA_ERROR_NOT_READY);
    gate.Open();
    EXPECT_CU(CU(cuEventSynchronize)(event));
    EXPECT_TRUE(gate.Passed());
  });
  waiter.join();
}

// cuEventElapsedTime: milliseconds, not negative in the order of one stream.
TEST_F(Events, ElapsedTime_OfOneStream_IsNotNegative) {
  const CUevent start = NewEvent(CU_EVENT_DEFAULT), end = NewEvent(CU_EVENT_DEFAULT);
  const CUstream stream = NewStream();
  ASSERT_CU(CU(cuEventRecord)(start, stream));
  ASSERT_CU(CU(cuMemsetD8Async)(NewMemory(kMiB), 1, kMiB, stream));
  ASSERT_CU(CU(cuEventRecord)(end, stream));
  ASSERT_CU(CU(cuEventSynchronize)(end));
  float milliseconds = -1;
  ASSERT_CU(CU(cuEventElapsedTime)(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 0);
}

// cuEventElapsedTime: INVALID_HANDLE without a record or without timing, NOT_READY before completion.
TEST_F(Events, ElapsedTime_ThatCannotBeTold_HasItsCodes) {
  const CUstream stream = NewStream();
  const CUevent start = NewEvent(CU_EVENT_DEFAULT), end = NewEvent(CU_EVENT_DEFAULT), untimed = NewEvent();
  float milliseconds = 0;
  ASSERT_CU(CU(cuEventRecord)(start, stream));
  EXPECT_EQ(CU(cuEventElapsedTime)(&milliseconds, start, end), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_CU(CU(cuEventRecord)(untimed, stream));
  EXPECT_EQ(CU(cuEventElapsedTime)(&milliseconds, start, untimed), CUDA_ERROR_INVALID_HANDLE);
  Gate& gate = Held(stream);
  ASSERT_CU(CU(cuEventRecord)(end, stream));
  EXPECT_EQ(CU(cuEventElapsedTime)(&milliseconds, start, end), CUDA_ERROR_NOT_READY);
  gate.Open();
  ASSERT_CU(CU(cuEventSynchronize)(end));
  EXPECT_CU(CU(cuEventElapsedTime)(&milliseconds, start, end));
}

}  // namespace
}  // namespace weir::conformance
