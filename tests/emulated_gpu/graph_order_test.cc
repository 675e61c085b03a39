// A graph's nodes are checked like calls when it is launched: against each other, against what streams do beside it, and
// against the memory that is there by then.
#include <functional>
#include <string>

#include "tests/emulated_gpu/driver_under_test.h"

namespace weir::emulated {
namespace {

class GraphOrder : public EmulatedDevice {
 protected:
  void SetUp() override {
    EmulatedDevice::SetUp();
    stream_ = NewStream();
    ASSERT_EQ(CU(cuMemAlloc)(&memory_, kMiB), CUDA_SUCCESS);
  }

  void Write(CUstream stream, size_t offset = 0) {
    ASSERT_EQ(CU(cuMemsetD8Async)(memory_ + offset, 1, 4096, stream), CUDA_SUCCESS);
  }

  static void Wait(CUstream after, CUstream before) {
    const CUevent event = NewEvent();
    ASSERT_EQ(CU(cuEventRecord)(event, before), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamWaitEvent)(after, event, 0), CUDA_SUCCESS);
  }

  CUgraphExec Captured(const std::function<void()>& body) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    EXPECT_EQ(CU(cuStreamBeginCapture)(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    body();
    EXPECT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuGraphInstantiate)(&exec, graph, 0), CUDA_SUCCESS);
    return exec;
  }

  static void Launch(CUgraphExec exec, CUstream stream) {
    ASSERT_EQ(CU(cuGraphLaunch)(exec, stream), CUDA_SUCCESS);
  }

  CUstream stream_ = nullptr;
  CUdeviceptr memory_ = 0;
};

// The branches of a fork that write the same bytes; with the wait between them, they do so in order.
TEST_F(GraphOrder, Branches_ThatNothingOrders_AreReportedAtEachLaunch) {
  for (const bool ordered : {true, false}) {
    const CUstream side = NewStream();
    const CUgraphExec exec = Captured([&] {
      Write(stream_, 8192);
      Wait(side, stream_);
      Write(stream_);
      if (ordered) Wait(side, stream_);
      Write(side);
      Wait(stream_, side);
    });
    const uint64_t before = NewReports();
    for (uint64_t launches = 1; launches <= 2; ++launches) {
      Launch(exec, stream_);
      EXPECT_EQ(NewReports() - before, ordered ? 0 : launches);
    }
  }
}

TEST_F(GraphOrder, Launch_IsOrderedWithTheWorkOfItsStreamAlone) {
  const CUstream side = NewStream(), other = NewStream();
  const CUgraphExec exec = Captured([&] {
    Wait(side, stream_);
    Write(side);
    Write(stream_, 4096);
    Wait(stream_, side);
  });
  Write(stream_);
  Launch(exec, stream_);
  Write(stream_);
  EXPECT_EQ(NewReports(), 0u);
  Write(other, 4096);
  EXPECT_EQ(NewReports(), 1u) << "nothing orders it after the graph";
}

// "each launch is ordered behind ... any previous launches of this executable graph", on whatever stream.
TEST_F(GraphOrder, Launches_OfOneGraph_AreInOrder) {
  const CUgraphExec exec = Captured([&] { Write(stream_); });
  Launch(exec, stream_);
  Launch(exec, NewStream());
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(GraphOrder, MemoryFreedSinceTheCapture_IsReportedAtTheLaunch) {
  CUdeviceptr freed = 0;
  ASSERT_EQ(CU(cuMemAlloc)(&freed, kMiB), CUDA_SUCCESS);
  const CUgraphExec exec =
      Captured([&] { ASSERT_EQ(CU(cuMemsetD8Async)(freed, 1, 4096, stream_), CUDA_SUCCESS); });
  ASSERT_EQ(CU(cuMemFree)(freed), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 0u);
  EXPECT_EQ(CU(cuGraphLaunch)(exec, stream_), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(GraphOrder, DeadHandles_AreReported) {
  const CUgraphExec exec = Captured([&] { Write(stream_); });
  ASSERT_EQ(CU(cuGraphExecDestroy)(exec), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuGraphLaunch)(exec, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuGraphExecDestroy)(exec), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(NewReports(), 2u);
}

}  // namespace
}  // namespace weir::emulated
