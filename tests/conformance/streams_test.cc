// Streams: driver API documentation, "Stream synchronization behavior" (legacy, per-thread and non-blocking
// streams), "Stream Management" and cuLaunchHostFunc.
#include <thread>

#include "tests/conformance/order_fixture.h"

namespace weir::conformance {
namespace {

class Streams : public Order {};

// cuStreamQuery: NOT_READY until all work has completed.
TEST_F(Streams, Query_TellsWhetherWorkIsLeft) {
  const CUstream stream = NewStream();
  EXPECT_CU(CU(cuStreamQuery)(stream));
  Gate& gate = Held(stream);
  EXPECT_TRUE(Unfinished(stream));
  gate.Open();
  EXPECT_TRUE(Finishes(stream));
  EXPECT_TRUE(gate.Passed());
}

// Operations of one stream run in the order in which they were enqueued.
TEST_F(Streams, Work_OfOneStream_RunsInOrder) {
  const CUstream stream = NewStream();
  uint8_t* pinned = NewPinned(4096);
  const CUdeviceptr first = NewMemory(4096), second = NewMemory(4096);
  ASSERT_CU(CU(cuMemcpyHtoDAsync)(first, pinned, 4096, stream));
  Call(stream, [pinned] { pinned[100] = 1; });
  ASSERT_CU(CU(cuMemcpyHtoDAsync)(second, pinned, 4096, stream));
  Call(stream, [pinned] { pinned[100] = 2; });
  ASSERT_CU(CU(cuMemcpyDtoHAsync)(pinned + 200, first + 100, 1, stream));
  ASSERT_CU(CU(cuMemcpyDtoHAsync)(pinned + 201, second + 100, 1, stream));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_EQ(pinned[100], 2);
  EXPECT_EQ(pinned[200], 0);
  EXPECT_EQ(pinned[201], 1);
}

// Streams that nothing connects do not wait for each other.
TEST_F(Streams, NonBlockingStreams_DoNotWaitForEachOther) {
  const CUstream held = NewStream(), free = NewStream();
  const CUdeviceptr memory = NewMemory(4096);
  Gate& gate = Held(held);
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 1, 4096, free));
  EXPECT_CU(CU(cuStreamSynchronize)(free));
  EXPECT_TRUE(Unfinished(held));
  EXPECT_FALSE(gate.Passed());
}

// "an action taken in the legacy stream … waits on all blocking streams"
TEST_F(Streams, LegacyStream_WaitsForBlockingStreams) {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT);
  Gate& gate = Held(blocking);
  bool passed_before = false;
  Call(nullptr, [&] { passed_before = gate.Passed(); });
  EXPECT_TRUE(Unfinished(nullptr));
  gate.Open();
  ASSERT_CU(CU(cuStreamSynchronize)(nullptr));
  EXPECT_TRUE(passed_before);
}

// "all blocking streams wait on the legacy stream"
TEST_F(Streams, BlockingStreams_WaitForTheLegacyStream) {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT);
  Gate& gate = Held(nullptr);
  bool passed_before = false;
  Call(blocking, [&] { passed_before = gate.Passed(); });
  EXPECT_TRUE(Unfinished(blocking));
  gate.Open();
  ASSERT_CU(CU(cuStreamSynchronize)(blocking));
  EXPECT_TRUE(passed_before);
}

// What lies between two blocking streams in the legacy stream orders them.
TEST_F(Streams, BlockingStreams_AreOrderedThroughTheLegacyStream) {
  const CUstream first = NewStream(CU_STREAM_DEFAULT), second = NewStream(CU_STREAM_DEFAULT);
  Gate& gate = Held(first);
  Call(nullptr, [] {});
  bool passed_before = false;
  Call(second, [&] { passed_before = gate.Passed(); });
  EXPECT_TRUE(Unfinished(second));
  gate.Open();
  ASSERT_CU(CU(cuStreamSynchronize)(second));
  EXPECT_TRUE(passed_before);
}

// Without it they do not wait for each other.
TEST_F(Streams, BlockingStreams_AloneDoNotWaitForEachOther) {
  const CUstream held = NewStream(CU_STREAM_DEFAULT), free = NewStream(CU_STREAM_DEFAULT);
  const CUdeviceptr memory = NewMemory(4096);
  Held(held);
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 1, 4096, free));
  EXPECT_CU(CU(cuStreamSynchronize)(free));
  EXPECT_TRUE(Unfinished(held));
}

// CU_STREAM_NON_BLOCKING: no implicit synchronisation with the legacy stream, either way.
TEST_F(Streams, NonBlockingStream_DoesNotWaitForTheLegacyStream) {
  const CUstream stream = NewStream();
  const CUdeviceptr memory = NewMemory(4096);
  Gate& legacy = Held(nullptr);
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 1, 4096, stream));
  EXPECT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_FALSE(legacy.Passed());
}

TEST_F(Streams, LegacyStream_DoesNotWaitForNonBlockingStreams) {
  const CUstream stream = NewStream();
  const CUdeviceptr memory = NewMemory(4096);
  Gate& held = Held(stream);
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 2, 4096, nullptr));
  EXPECT_CU(CU(cuStreamSynchronize)(nullptr));
  EXPECT_FALSE(held.Passed());
}

// CU_STREAM_PER_THREAD: each thread has its own, and it is a blocking stream.
TEST_F(Streams, PerThreadStream_IsOfOneThreadAndBlocking) {
  Gate& gate = Held(CU_STREAM_PER_THREAD);
  EXPECT_TRUE(Unfinished(CU_STREAM_PER_THREAD));
  CUcontext context = nullptr;
  ASSERT_CU(CU(cuCtxGetCurrent)(&context));
  std::thread([&] {
    ASSERT_CU(CU(cuCtxSetCurrent)(context));
    EXPECT_CU(CU(cuStreamQuery)(CU_STREAM_PER_THREAD));
  }).join();
  Call(CU_STREAM_LEGACY, [] {});
  EXPECT_TRUE(Unfinished(CU_STREAM_LEGACY));
  gate.Open();
  EXPECT_CU(CU(cuStreamSynchronize)(CU_STREAM_LEGACY));
  EXPECT_TRUE(gate.Passed());
}

// cuStreamSynchronize waits for the work of its stream; cuCtxSynchronize for that of all streams.
TEST_F(Streams, Synchronize_WaitsForTheWork) {
  for (const bool whole_context : {false, true}) {
    const CUstream stream = NewStream();
    Gate& gate = Held(stream);
    std::thread opener([&] { gate.Open(); });
    EXPECT_CU(whole_context ? CU(cuCtxSynchronize)() : CU(cuStreamSynchronize)(stream));
    EXPECT_TRUE(gate.Passed());
    opener.join();
  }
}

// cuStreamDestroy: "will return immediately and the resources … released automatically once the device has
// completed all work"
TEST_F(Streams, Destroy_WithWorkLeft_ReturnsAndTheWorkIsDone) {
  CUstream stream = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  Gate& gate = Held(stream);
  bool done = false;
  Call(stream, [&] { done = true; });
  const CUevent end = NewEvent();
  ASSERT_CU(CU(cuEventRecord)(end, stream));
  ASSERT_CU(CU(cuStreamDestroy)(stream));
  EXPECT_FALSE(gate.Passed());
  gate.Open();
  ASSERT_CU(CU(cuEventSynchronize)(end));
  EXPECT_TRUE(done);
}

// cuLaunchHostFunc: called once, in stream order, with its argument; nothing later of the stream runs before it
// has returned.
TEST_F(Streams, HostFunctions_RunOnceAndInOrder) {
  const CUstream stream = NewStream();
  std::vector<int> calls;
  for (int i = 0; i < 100; ++i) Call(stream, [&calls, i] { calls.push_back(i); });
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  ASSERT_EQ(calls.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(calls[i], i);
}

TEST_F(Streams, HostFunction_ThatIsNone_IsInvalid) {
  EXPECT_EQ(CU(cuLaunchHostFunc)(NewStream(), nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

// cuStreamCreateWithPriority: "If the specified priority is outside the numerical range … it will automatically
// be clamped"; a lower number is a higher priority. cuStreamCreate gives 0.
TEST_F(Streams, Priorities_AreClampedToTheRange) {
  int least = 0, greatest = 0, priority = 0;
  ASSERT_CU(CU(cuCtxGetStreamPriorityRange)(&least, &greatest));
  EXPECT_LE(greatest, least);
  for (const auto& [asked, given] : {std::pair{-1000, greatest}, {1000, least}, {greatest, greatest}}) {
    CUstream stream = nullptr;
    ASSERT_CU(CU(cuStreamCreateWithPriority)(&stream, CU_STREAM_NON_BLOCKING, asked));
    ASSERT_CU(CU(cuStreamGetPriority)(stream, &priority));
    EXPECT_EQ(priority, given);
    EXPECT_CU(CU(cuStreamDestroy)(stream));
  }
  ASSERT_CU(CU(cuStreamGetPriority)(NewStream(), &priority));
  EXPECT_EQ(priority, 0);
}

// cuStreamGetFlags
TEST_F(Streams, Flags_AreThoseOfTheCreation) {
  unsigned flags = ~0u;
  ASSERT_CU(CU(cuStreamGetFlags)(NewStream(CU_STREAM_NON_BLOCKING), &flags));
  EXPECT_EQ(flags, unsigned{CU_STREAM_NON_BLOCKING});
  ASSERT_CU(CU(cuStreamGetFlags)(NewStream(CU_STREAM_DEFAULT), &flags));
  EXPECT_EQ(flags, unsigned{CU_STREAM_DEFAULT});
}

// cuStreamGetId: unique for the life of the program.
TEST_F(Streams, Ids_AreUnique) {
  std::vector<unsigned long long> ids(20);
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_CU(CU(cuStreamGetId)(NewStream(), &ids[i]));
    for (size_t j = 0; j < i; ++j) EXPECT_NE(ids[i], ids[j]);
  }
}

}  // namespace
}  // namespace weir::conformance
