// Copies, memsets and host functions run as late as the rules allow (the environment's default), and then only what is
// needed. That nothing has run is seen in pinned memory, which a real device would be free to have written already.
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/emulated_gpu/driver_under_test.h"

namespace weir::emulated {
namespace {

constexpr size_t kSize = 4096;

class LazyStreams : public EmulatedDevice {
 protected:
  static CUevent Record(CUstream stream) {
    const CUevent event = NewEvent();
    EXPECT_EQ(CU(cuEventRecord)(event, stream), CUDA_SUCCESS);
    return event;
  }
  static CUdeviceptr NewMemory(char value) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CU(cuMemAlloc)(&address, kSize), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemsetD8)(address, value, kSize), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
    return address;
  }
  static char* NewPinned() {
    void* address = nullptr;
    EXPECT_EQ(CU(cuMemHostAlloc)(&address, kSize, 0), CUDA_SUCCESS);
    std::memset(address, 0, kSize);
    return static_cast<char*>(address);
  }
  static void ToHost(char* to, CUdeviceptr from, CUstream stream) {
    ASSERT_EQ(CU(cuMemcpyDtoHAsync)(to, from, kSize, stream), CUDA_SUCCESS);
  }
  static bool Holds(const char* bytes, char value) { return bytes[0] == value && bytes[kSize - 1] == value; }
};

TEST_F(LazyStreams, CopyToPinnedMemory_RunsAtTheSynchronisation) {
  const CUstream stream = NewStream();
  char* pinned = NewPinned();
  ToHost(pinned, NewMemory(7), stream);
  EXPECT_TRUE(Holds(pinned, 0));
  ASSERT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(pinned, 7));
}

TEST_F(LazyStreams, Synchronisation_RunsOnlyWhatItWaitsFor) {
  const CUstream one = NewStream(), other = NewStream(), waited = NewStream();
  char *first = NewPinned(), *second = NewPinned(), *third = NewPinned(), *later = NewPinned();
  const CUdeviceptr memory = NewMemory(7);
  ToHost(first, memory, waited);
  const CUevent event = Record(waited);
  ToHost(later, memory, waited);
  ToHost(second, memory, other);
  ASSERT_EQ(CU(cuStreamWaitEvent)(one, event, 0), CUDA_SUCCESS);
  ToHost(third, memory, one);
  ASSERT_EQ(CU(cuStreamSynchronize)(one), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(first, 7));
  EXPECT_TRUE(Holds(second, 0));
  EXPECT_TRUE(Holds(third, 7));
  EXPECT_TRUE(Holds(later, 0));  // after the event
  ASSERT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(second, 7) && Holds(later, 7));
}

TEST_F(LazyStreams, EventRecordedAgainBeforeItRan_BindsWaitersToTheirRecord) {
  const CUstream recorded = NewStream(), waiter = NewStream();
  char *first = NewPinned(), *second = NewPinned();
  const CUdeviceptr memory = NewMemory(7);
  ToHost(first, memory, recorded);
  const CUevent event = Record(recorded);
  ASSERT_EQ(CU(cuStreamWaitEvent)(waiter, event, 0), CUDA_SUCCESS);
  ToHost(second, memory, recorded);
  ASSERT_EQ(CU(cuEventRecord)(event, recorded), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamSynchronize)(waiter), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(first, 7));
  EXPECT_TRUE(Holds(second, 0));
  ASSERT_EQ(CU(cuEventSynchronize)(event), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(second, 7));
}

TEST_F(LazyStreams, Polling_AnEventOrAStream_Ends) {
  const CUstream stream = NewStream();
  char* pinned = NewPinned();
  ToHost(pinned, NewMemory(7), stream);
  const CUevent event = Record(stream);
  EXPECT_EQ(CU(cuEventQuery)(event), CUDA_ERROR_NOT_READY);
  EXPECT_TRUE(Holds(pinned, 0));
  int polls = 1;
  while (CU(cuEventQuery)(event) == CUDA_ERROR_NOT_READY && polls < 100) ++polls;
  EXPECT_LT(polls, 100);
  EXPECT_TRUE(Holds(pinned, 7));
  ToHost(pinned, NewMemory(8), stream);
  for (polls = 0; CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY && polls < 100;) ++polls;
  EXPECT_LT(polls, 100);
  EXPECT_TRUE(Holds(pinned, 8));
}

TEST_F(LazyStreams, Polling_ANewEventEachTime_Ends) {
  const CUstream stream = NewStream();
  const CUdeviceptr memory = NewMemory(1);
  int polls = 0;
  do {
    ASSERT_EQ(CU(cuMemsetD8Async)(memory, 2, kSize, stream), CUDA_SUCCESS);
    ++polls;
  } while (CU(cuEventQuery)(Record(stream)) == CUDA_ERROR_NOT_READY && polls < 1000);
  EXPECT_LT(polls, 1000);
}

TEST_F(LazyStreams, CopyFromPageableMemory_HasTheBytesOfTheCall) {
  const CUstream stream = NewStream();
  const CUdeviceptr memory = NewMemory(0);
  std::vector<char> source(kSize, 7), result(kSize);
  ASSERT_EQ(CU(cuMemcpyHtoDAsync)(memory, source.data(), kSize, stream), CUDA_SUCCESS);
  std::fill(source.begin(), source.end(), 8);
  ASSERT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpyDtoH)(result.data(), memory, kSize), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(result.data(), 7));
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(LazyStreams, CopyFromPinnedMemory_ThatTheHostWritesMeanwhile_IsReported) {
  const CUstream stream = NewStream();
  const CUdeviceptr memory = NewMemory(0);
  char* pinned = NewPinned();
  std::memset(pinned, 7, kSize);
  ASSERT_EQ(CU(cuMemcpyHtoDAsync)(memory, pinned, kSize, stream), CUDA_SUCCESS);
  std::memset(pinned, 8, kSize);
  ASSERT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(LazyStreams, CopyFromPinnedMemory_ThatTheDeviceWritesFirst_IsFine) {
  const CUstream stream = NewStream();
  const CUdeviceptr from = NewMemory(7), to = NewMemory(0);
  char *pinned = NewPinned(), *result = NewPinned();
  ToHost(pinned, from, stream);
  ASSERT_EQ(CU(cuMemcpyHtoDAsync)(to, pinned, kSize, stream), CUDA_SUCCESS);
  ToHost(result, to, stream);
  ASSERT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(result, 7));
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(LazyStreams, CopyFromPinnedMemory_ThatAHostFunctionWritesFirst_IsFine) {
  const CUstream stream = NewStream();
  const CUdeviceptr to = NewMemory(0);
  char *pinned = NewPinned(), *result = NewPinned();
  std::memset(pinned, 1, kSize);
  ASSERT_EQ(CU(cuLaunchHostFunc)(
                stream, +[](void* memory) { std::memset(memory, 7, kSize); }, pinned),
            CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpyHtoDAsync)(to, pinned, kSize, stream), CUDA_SUCCESS);
  ToHost(result, to, stream);
  ASSERT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(result, 7));
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(LazyStreams, CopyToPageableMemory_ReturnsWithTheBytes) {
  const CUstream stream = NewStream();
  std::vector<char> result(kSize);
  ToHost(result.data(), NewMemory(7), stream);
  EXPECT_TRUE(Holds(result.data(), 7));
}

TEST_F(LazyStreams, LegacyStream_ComesAfterBlockingStreams) {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT), free = NewStream();
  char *first = NewPinned(), *second = NewPinned(), *third = NewPinned();
  const CUdeviceptr memory = NewMemory(7);
  ToHost(first, memory, blocking);
  ToHost(second, memory, CU_STREAM_PER_THREAD);
  ToHost(third, memory, free);
  ASSERT_EQ(CU(cuStreamSynchronize)(nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(first, 7) && Holds(second, 7));
  EXPECT_TRUE(Holds(third, 0));
}

TEST_F(LazyStreams, DestroyedStream_FinishesItsWork) {
  const CUstream stream = NewStream();
  char* pinned = NewPinned();
  ToHost(pinned, NewMemory(7), stream);
  const CUevent event = Record(stream);
  ASSERT_EQ(CU(cuStreamDestroy)(stream), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(pinned, 0));
  ASSERT_EQ(CU(cuEventSynchronize)(event), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(pinned, 7));
}

TEST_F(LazyStreams, Free_OfWhatQueuedWorkUses_RunsItFirst) {
  const CUstream stream = NewStream();
  char* pinned = NewPinned();
  const CUdeviceptr memory = NewMemory(7);
  ToHost(pinned, memory, stream);
  ASSERT_EQ(CU(cuMemFree)(memory), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(pinned, 7));
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(LazyStreams, MuchQueuedWork_StartsToRun) {
  const CUstream stream = NewStream();
  char* pinned = NewPinned();
  const CUdeviceptr memory = NewMemory(7);
  ToHost(pinned, memory, stream);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(CU(cuMemsetD8Async)(memory, 8, kSize, stream), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(pinned, 7));
}

TEST_F(LazyStreams, HostFunction_RunsInOrderWithCopies_OnAThreadOfItsOwn) {
  const CUstream stream = NewStream();
  struct Seen {
    char* pinned;
    std::atomic<bool> before{false};
    std::atomic<std::thread::id> thread{};
  } seen{NewPinned()};
  ToHost(seen.pinned, NewMemory(7), stream);
  const auto look = [](void* argument) {
    auto* self = static_cast<Seen*>(argument);
    self->before = Holds(self->pinned, 7);
    self->thread = std::this_thread::get_id();
  };
  ASSERT_EQ(CU(cuLaunchHostFunc)(stream, look, &seen), CUDA_SUCCESS);
  ToHost(seen.pinned, NewMemory(8), stream);
  ASSERT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_TRUE(seen.before);
  EXPECT_NE(seen.thread.load(), std::this_thread::get_id());
  EXPECT_TRUE(Holds(seen.pinned, 8));
}

TEST_F(LazyStreams, HostFunction_RunsWithoutAnyFurtherCall) {
  std::atomic<bool> ran{false};
  const auto set = [](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; };
  ASSERT_EQ(CU(cuLaunchHostFunc)(NewStream(), set, &ran), CUDA_SUCCESS);
  while (!ran) std::this_thread::yield();  // for ever, if the rule is broken
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace weir::emulated
