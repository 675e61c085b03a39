// Stream capture: driver API documentation, "Stream Management" (cuStreamBeginCapture and what follows,
// cuThreadExchangeStreamCaptureMode) and programming guide, "Creating a graph using stream capture".
#include <thread>

#include "tests/conformance/order_fixture.h"

namespace weir::conformance {
namespace {

class Capture : public Order {
 protected:
  void SetUp() override {
    Order::SetUp();
    stream_ = NewStream();
    memory_ = NewMemory(4096);
    Write(memory_, 0, 4096);
  }

  void Begin(CUstreamCaptureMode mode) { ASSERT_CU(CU(cuStreamBeginCapture)(stream_, mode)); }

  // Ends the capture; no graph where it was invalidated.
  CUresult End() {
    CUgraph graph = nullptr;
    const CUresult status = CU(cuStreamEndCapture)(stream_, &graph);
    if (graph != nullptr) {
      EXPECT_CU(CU(cuGraphDestroy)(graph));
    }
    return status;
  }

  // Runs `body` on a second thread with this context, in that mode.
  static void OnAnotherThread(CUstreamCaptureMode mode, const std::function<void()>& body) {
    CUcontext context = nullptr;
    ASSERT_CU(CU(cuCtxGetCurrent)(&context));
    std::thread([&] {
      CUstreamCaptureMode exchanged = mode;
      ASSERT_CU(CU(cuCtxSetCurrent)(context));
      ASSERT_CU(CU(cuThreadExchangeStreamCaptureMode)(&exchanged));
      body();
    }).join();
  }

  CUstream stream_ = nullptr;
  CUdeviceptr memory_ = 0;
};

// "When a stream is in capture mode, all operations pushed into the stream will not be executed, but will instead be
// captured into a graph".
TEST_F(Capture, Work_IsNotRunUntilTheGraphIsLaunched) {
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_CU(CU(cuStreamIsCapturing)(stream_, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_CU(CU(cuMemsetD8Async)(memory_, 0x51, 4096, stream_));
  CUgraph graph = nullptr;
  ASSERT_CU(CU(cuStreamEndCapture)(stream_, &graph));
  EXPECT_EQ(Count(memory_, 0, 4096), 4096u);
  CUgraphExec launched = nullptr;
  ASSERT_CU(CU(cuGraphInstantiate)(&launched, graph, 0));
  for (int i = 0; i < 2; ++i) {
    Write(memory_, 0, 4096);
    ASSERT_CU(CU(cuGraphLaunch)(launched, stream_));
    ASSERT_CU(CU(cuStreamSynchronize)(stream_));
    EXPECT_EQ(Count(memory_, 0x51, 4096), 4096u);
  }
  EXPECT_CU(CU(cuGraphExecDestroy)(launched));
  EXPECT_CU(CU(cuGraphDestroy)(graph));
}

// cuThreadExchangeStreamCaptureMode: gives the thread's mode and sets another; GLOBAL at first.
TEST_F(Capture, Mode_IsExchanged) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_CU(CU(cuThreadExchangeStreamCaptureMode)(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  ASSERT_CU(CU(cuThreadExchangeStreamCaptureMode)(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
}

TEST_F(Capture, StreamThatDoesNotCapture_SaysSo) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  ASSERT_CU(CU(cuStreamIsCapturing)(stream_, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
}

// R13: a second thread in relaxed mode may allocate, query events recorded before, map and set access.
TEST_F(Capture, SecondThread_InRelaxedMode_MayCallWhatIsUnsafe) {
  for (const CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_GLOBAL}) {
    const CUevent event = NewEvent();
    ASSERT_CU(CU(cuEventRecord)(event, nullptr));
    ASSERT_CU(CU(cuCtxSynchronize)());
    Begin(mode);
    OnAnotherThread(CU_STREAM_CAPTURE_MODE_RELAXED, [&] {
      EXPECT_CU(CU(cuEventQuery)(event));
      CUdeviceptr address = 0;
      EXPECT_CU(CU(cuMemAlloc)(&address, 4096));
      EXPECT_CU(CU(cuMemFree)(address));
    });
    EXPECT_CU(End());
  }
}

// CU_STREAM_CAPTURE_MODE_GLOBAL: "prohibited from potentially unsafe API calls" while another thread captures in
// global mode.
TEST_F(Capture, SecondThread_InGlobalMode_IsRefused) {
  Begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  OnAnotherThread(CU_STREAM_CAPTURE_MODE_GLOBAL, [] {
    CUdeviceptr address = 0;
    EXPECT_EQ(CU(cuMemAlloc)(&address, 4096), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  });
  End();
}

// CU_STREAM_CAPTURE_MODE_RELAXED: "The local thread is not prohibited", even while it captures itself.
TEST_F(Capture, OwnThread_CapturingRelaxed_MayAllocate) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_CU(CU(cuThreadExchangeStreamCaptureMode)(&mode));
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  CUdeviceptr address = 0;
  EXPECT_CU(CU(cuMemAlloc)(&address, 4096));
  EXPECT_CU(End());
  EXPECT_CU(CU(cuMemFree)(address));
  ASSERT_CU(CU(cuThreadExchangeStreamCaptureMode)(&mode));
}

// "It is invalid to synchronize or query the execution status of a stream which is being captured".
TEST_F(Capture, SynchronisingTheStream_InvalidatesTheCapture) {
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(End(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_CU(CU(cuStreamSynchronize)(stream_));
}

// cuStreamBeginCapture: not on CU_STREAM_LEGACY; cuStreamEndCapture: not on a stream that does not capture.
TEST_F(Capture, WrongStream_IsRefused) {
  EXPECT_NE(CU(cuStreamBeginCapture)(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_ERROR_ILLEGAL_STATE);
}

// An event recorded into a capture is part of the graph: a stream that waits for it captures too.
TEST_F(Capture, WaitForACapturedEvent_JoinsTheCapture) {
  const CUstream other = NewStream();
  const CUevent fork = NewEvent(), join = NewEvent();
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  ASSERT_CU(CU(cuEventRecord)(fork, stream_));
  ASSERT_CU(CU(cuStreamWaitEvent)(other, fork, 0));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_CU(CU(cuStreamIsCapturing)(other, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_CU(CU(cuMemsetD8Async)(memory_, 1, 16, other));
  ASSERT_CU(CU(cuEventRecord)(join, other));
  EXPECT_EQ(CU(cuEventQuery)(join), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_NE(End(), CUDA_SUCCESS);  // the query is not permitted, and the other stream was not joined
}

// cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_UNJOINED when a forked stream was not joined.
TEST_F(Capture, EndWithoutJoining_IsRefused) {
  const CUstream other = NewStream();
  const CUevent fork = NewEvent();
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  ASSERT_CU(CU(cuEventRecord)(fork, stream_));
  ASSERT_CU(CU(cuStreamWaitEvent)(other, fork, 0));
  ASSERT_CU(CU(cuMemsetD8Async)(memory_, 1, 16, other));
  EXPECT_EQ(End(), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

// cuStreamEndCapture: on the stream where the capture began, in its thread unless it is relaxed.
TEST_F(Capture, EndElsewhere_IsRefused) {
  Begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  OnAnotherThread(CU_STREAM_CAPTURE_MODE_RELAXED,
                  [&] { EXPECT_EQ(End(), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD); });
  const CUstream other = NewStream();
  const CUevent fork = NewEvent();
  ASSERT_CU(CU(cuEventRecord)(fork, stream_));
  ASSERT_CU(CU(cuStreamWaitEvent)(other, fork, 0));
  CUgraph graph = nullptr;
  EXPECT_EQ(CU(cuStreamEndCapture)(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  End();
}

// Programming guide, "Cross-stream dependencies and events": "It is invalid to wait on a non-captured event from a stream
// which is being captured".
TEST_F(Capture, WaitForAnEventOutside_IsRefused) {
  const CUevent outside = NewEvent();
  ASSERT_CU(CU(cuEventRecord)(outside, NewStream()));
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(CU(cuStreamWaitEvent)(stream_, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(CU(cuMemsetD8Async)(memory_, 1, 16, stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(End(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

// "It is invalid to merge two separate capture graphs by waiting on a captured event".
TEST_F(Capture, TwoCaptures_AreNotMerged) {
  const CUstream other = NewStream();
  const CUevent event = NewEvent();
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  ASSERT_CU(CU(cuStreamBeginCapture)(other, CU_STREAM_CAPTURE_MODE_RELAXED));
  ASSERT_CU(CU(cuEventRecord)(event, stream_));
  EXPECT_EQ(CU(cuStreamWaitEvent)(other, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  CUgraph graph = nullptr;
  EXPECT_EQ(CU(cuStreamEndCapture)(other, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(graph, nullptr);
  End();
}

// "When any stream in the same context is being captured, and it was not created with cudaStreamNonBlocking, any
// attempted use of the legacy stream is invalid."
TEST_F(Capture, LegacyStreamBesideABlockingCapture_IsRefused) {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT);
  ASSERT_CU(CU(cuStreamBeginCapture)(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_EQ(CU(cuStreamIsCapturing)(nullptr, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_CU(CU(cuStreamIsCapturing)(blocking, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE) << "the question does not invalidate it";
  EXPECT_EQ(CU(cuMemsetD8Async)(memory_, 1, 16, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_CU(CU(cuStreamIsCapturing)(blocking, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CUgraph graph = nullptr;
  EXPECT_EQ(CU(cuStreamEndCapture)(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_CU(CU(cuMemsetD8Async)(memory_, 1, 16, nullptr));
}

// "It is also invalid to query the execution status of or synchronize a broader handle which encompasses an active stream
// capture".
TEST_F(Capture, SynchronisingTheContext_IsRefused) {
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(End(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

// CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: "Concurrent capture sequences in other threads are ignored".
TEST_F(Capture, ThreadLocalMode_ForbidsItsOwnThreadAlone) {
  Begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CUdeviceptr address = 0;
  OnAnotherThread(CU_STREAM_CAPTURE_MODE_GLOBAL, [&] {
    EXPECT_CU(CU(cuMemAlloc)(&address, 4096));
    EXPECT_CU(CU(cuMemFree)(address));
  });
  EXPECT_EQ(CU(cuMemAlloc)(&address, 4096), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(End(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

}  // namespace
}  // namespace weir::conformance
