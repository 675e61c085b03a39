// Graphs: driver API documentation, "Graph Management", and programming guide, "CUDA Graphs".
#include <algorithm>
#include <thread>

#include "tests/conformance/order_fixture.h"

namespace weir::conformance {
namespace {

class Graphs : public Order {
 protected:
  void SetUp() override {
    Order::SetUp();
    stream_ = NewStream();
    memory_ = NewMemory(kSize + kMore);
    Write(memory_, 0, kSize);
  }

  void TearDown() override {
    for (const CUgraphExec exec : execs_) EXPECT_CU(CU(cuGraphExecDestroy)(exec));
    for (const CUgraph graph : graphs_) EXPECT_CU(CU(cuGraphDestroy)(graph));
    Order::TearDown();
  }

  // What `body` enqueues on stream_, as a graph.
  CUgraph Captured(const std::function<void()>& body) {
    EXPECT_CU(CU(cuStreamBeginCapture)(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
    body();
    CUgraph graph = nullptr;
    EXPECT_CU(CU(cuStreamEndCapture)(stream_, &graph));
    graphs_.push_back(graph);
    return graph;
  }

  CUgraphExec Instantiated(CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_CU(CU(cuGraphInstantiate)(&exec, graph, 0));
    execs_.push_back(exec);
    return exec;
  }

  void Fill(uint8_t value, size_t offset = 0, size_t size = kSize) {
    EXPECT_CU(CU(cuMemsetD8Async)(memory_ + offset, value, size, stream_));
  }

  // Two streams of one capture, joined again: each fills a half, and some bytes of the second go behind both.
  CUgraph Forked(CUstream other) {
    const CUevent fork = NewEvent(), join = NewEvent();
    return Captured([&] {
      Fill(1);
      EXPECT_CU(CU(cuEventRecord)(fork, stream_));
      EXPECT_CU(CU(cuStreamWaitEvent)(other, fork, 0));
      Fill(2, 0, kSize / 2);
      EXPECT_CU(CU(cuMemsetD8Async)(memory_ + kSize / 2, 3, kSize / 2, other));
      EXPECT_CU(CU(cuEventRecord)(join, other));
      EXPECT_CU(CU(cuStreamWaitEvent)(stream_, join, 0));
      EXPECT_CU(CU(cuMemcpyDtoDAsync)(memory_ + kSize, memory_ + kSize / 2, 16, stream_));
    });
  }

  void ExpectForked() {
    EXPECT_EQ(Count(memory_, 2, kSize / 2), kSize / 2);
    EXPECT_EQ(Count(memory_ + kSize / 2, 3, kSize / 2), kSize / 2);
    EXPECT_EQ(Count(memory_ + kSize, 3, 16), 16u);
  }

  static constexpr size_t kSize = 4096, kMore = 256;
  CUstream stream_ = nullptr;
  CUdeviceptr memory_ = 0;

 private:
  std::vector<CUgraph> graphs_;
  std::vector<CUgraphExec> execs_;
};

// "the order of work in the graph": what each stream of a capture did comes out as nodes and edges.
TEST_F(Graphs, ForkedCapture_HasItsNodesAndEdges) {
  const CUgraph graph = Forked(NewStream());
  size_t nodes = 0, edges = 0, roots = 0;
  ASSERT_CU(CU(cuGraphGetNodes)(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 4u);
  ASSERT_CU(CU(cuGraphGetEdges)(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(edges, 4u);
  ASSERT_CU(CU(cuGraphGetRootNodes)(graph, nullptr, &roots));
  ASSERT_EQ(roots, 1u);
  CUgraphNode root = nullptr;
  ASSERT_CU(CU(cuGraphGetRootNodes)(graph, &root, &roots));
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  ASSERT_CU(CU(cuGraphNodeGetType)(root, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEMSET);
  size_t dependents = 0;
  ASSERT_CU(CU(cuGraphNodeGetDependentNodes)(root, nullptr, nullptr, &dependents));
  EXPECT_EQ(dependents, 2u);
  std::vector<CUgraphNode> all(nodes + 1, root);
  nodes = all.size();
  ASSERT_CU(CU(cuGraphGetNodes)(graph, all.data(), &nodes));
  EXPECT_EQ(nodes, 4u);
  EXPECT_EQ(all.back(), nullptr) << "the rest of a longer array is set to null";
}

TEST_F(Graphs, Launch_RunsTheNodesInOrder) {
  const CUgraphExec exec = Instantiated(Forked(NewStream()));
  for (int i = 0; i < 2; ++i) {
    Write(memory_, 0, kSize);
    ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));
    ASSERT_CU(CU(cuStreamSynchronize)(stream_));
    ExpectForked();
  }
}

// cuGraphLaunch: "each launch is ordered behind both any previous work in this stream and any previous launches of this
// executable graph", and later work in the stream behind it.
TEST_F(Graphs, Launch_IsOrderedInItsStream) {
  const CUgraphExec exec = Instantiated(Captured([&] { Fill(1); }));
  Gate& gate = Held(stream_);
  ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));
  EXPECT_TRUE(Unfinished(stream_));
  const CUstream other = NewStream();
  ASSERT_CU(CU(cuGraphLaunch)(exec, other));
  EXPECT_TRUE(Unfinished(other)) << "behind the launch before it";
  gate.Open();
  EXPECT_TRUE(Finishes(stream_));
  EXPECT_TRUE(Finishes(other));
}

// A host node runs when the graph does, each time.
TEST_F(Graphs, HostFunction_RunsWithEachLaunch) {
  int calls = 0;
  const CUgraphExec exec = Instantiated(Captured([&] { Call(stream_, [&] { ++calls; }); }));
  EXPECT_EQ(calls, 0);
  for (int i = 1; i <= 3; ++i) {
    ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));
    ASSERT_CU(CU(cuStreamSynchronize)(stream_));
    EXPECT_EQ(calls, i);
  }
}

// A node keeps addresses, not bytes: it copies what the host memory holds when the graph runs.
TEST_F(Graphs, Copy_ReadsTheHostWhenItRuns) {
  uint8_t* pinned = NewPinned(16);
  const CUgraphExec exec =
      Instantiated(Captured([&] { EXPECT_CU(CU(cuMemcpyHtoDAsync)(memory_, pinned, 16, stream_)); }));
  for (const uint8_t value : {7, 8}) {
    std::fill_n(pinned, 16, value);
    ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));
    ASSERT_CU(CU(cuStreamSynchronize)(stream_));
    EXPECT_EQ(Count(memory_, value, 16), 16u);
  }
}

// "A graph is a one-time template": the executable graph does not need it any more.
TEST_F(Graphs, ExecutableGraph_OutlivesItsGraph) {
  ASSERT_CU(CU(cuStreamBeginCapture)(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  Fill(5);
  CUgraph graph = nullptr;
  ASSERT_CU(CU(cuStreamEndCapture)(stream_, &graph));
  const CUgraphExec exec = Instantiated(graph);
  ASSERT_CU(CU(cuGraphDestroy)(graph));
  ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_EQ(Count(memory_, 5, kSize), kSize);
}

// cuGraphExecUpdate: the parameters of a topologically identical graph.
TEST_F(Graphs, Update_OfTheSameTopology_ChangesParameters) {
  const CUgraphExec exec = Instantiated(Captured([&] { Fill(1); }));
  CUgraphExecUpdateResultInfo info{};
  ASSERT_CU(CU(cuGraphExecUpdate)(exec, Captured([&] { Fill(9); }), &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_EQ(Count(memory_, 9, kSize), kSize);
}

TEST_F(Graphs, Update_OfAnotherTopologyOrType_IsRefused) {
  const CUgraphExec exec = Instantiated(Captured([&] { Fill(1); }));
  CUgraphExecUpdateResultInfo info{};
  const CUgraph longer = Captured([&] {
    Fill(2);
    Fill(3);
  });
  EXPECT_EQ(CU(cuGraphExecUpdate)(exec, longer, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  const CUgraph other =
      Captured([&] { EXPECT_CU(CU(cuMemcpyDtoDAsync)(memory_, memory_ + 2048, 16, stream_)); });
  EXPECT_EQ(CU(cuGraphExecUpdate)(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  EXPECT_NE(info.errorNode, nullptr);
  ASSERT_CU(CU(cuGraphLaunch)(exec, stream_));  // it is what it was
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_EQ(Count(memory_, 1, kSize), kSize);
}

// A graph that is launched on a stream that captures becomes a child graph.
TEST_F(Graphs, LaunchInACapture_IsAChildGraph) {
  const CUgraphExec child = Instantiated(Forked(NewStream()));
  const CUgraph graph = Captured([&] {
    EXPECT_CU(CU(cuGraphLaunch)(child, stream_));
    Fill(6, kSize + 64, 8);
  });
  CUgraphNode root = nullptr;
  size_t roots = 1;
  ASSERT_CU(CU(cuGraphGetRootNodes)(graph, &root, &roots));
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  ASSERT_CU(CU(cuGraphNodeGetType)(root, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_GRAPH);
  ASSERT_CU(CU(cuGraphLaunch)(Instantiated(graph), stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_EQ(Count(memory_ + kSize + 64, 6, 8), 8u);
  ExpectForked();
}

// CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL: nodes that act on the event when the graph runs.
TEST_F(Graphs, ExternalEvents_AreNodes) {
  const CUstream other = NewStream();
  const CUevent before = NewEvent(), after = NewEvent();
  const CUgraph graph = Captured([&] {
    EXPECT_CU(CU(cuStreamWaitEvent)(stream_, before, CU_EVENT_WAIT_EXTERNAL));
    Fill(4);
    EXPECT_CU(CU(cuEventRecordWithFlags)(after, stream_, CU_EVENT_RECORD_EXTERNAL));
  });
  size_t nodes = 0;
  ASSERT_CU(CU(cuGraphGetNodes)(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 3u);
  Gate& gate = Held(other);
  ASSERT_CU(CU(cuEventRecord)(before, other));
  ASSERT_CU(CU(cuGraphLaunch)(Instantiated(graph), stream_));
  EXPECT_EQ(CU(cuEventQuery)(after), CUDA_ERROR_NOT_READY);
  gate.Open();
  ASSERT_CU(CU(cuEventSynchronize)(after));
  EXPECT_EQ(Count(memory_, 4, kSize), kSize);
}

// cuStreamGetCaptureInfo, cuStreamUpdateCaptureDependencies: an extra node between the captured ones.
TEST_F(Graphs, NodeAddedWhileCapturing_IsPartOfTheGraph) {
  CUgraphNode added = nullptr;
  Captured([&] {
    Fill(1);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CUgraph open = nullptr;
    const CUgraphNode* last = nullptr;
    size_t count = 0;
    ASSERT_CU(CU(cuStreamGetCaptureInfo)(stream_, &status, &id, &open, &last, nullptr, &count));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    ASSERT_EQ(count, 1u);
    ASSERT_CU(CU(cuGraphAddEmptyNode)(&added, open, last, count));
    ASSERT_CU(CU(cuStreamUpdateCaptureDependencies)(stream_, &added, nullptr, 1,
                                                    CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    Fill(2);
  });
  CUgraphNode next = nullptr;
  size_t count = 1;
  ASSERT_CU(CU(cuGraphNodeGetDependentNodes)(added, &next, nullptr, &count));
  ASSERT_EQ(count, 1u);
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  ASSERT_CU(CU(cuGraphNodeGetType)(next, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEMSET);
}

// cuUserObjectCreate, cuGraphRetainUserObject: the object lives as long as the last of graph and executable graph.
TEST_F(Graphs, UserObject_LivesAsLongAsTheLastGraph) {
  static std::atomic<int> destroyed;
  destroyed = 0;
  CUuserObject object = nullptr;
  ASSERT_CU(CU(cuUserObjectCreate)(
      &object, nullptr, [](void*) { ++destroyed; }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  CUgraph graph = nullptr;
  ASSERT_CU(CU(cuGraphCreate)(&graph, 0));
  ASSERT_CU(CU(cuGraphRetainUserObject)(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraphExec exec = nullptr;
  ASSERT_CU(CU(cuGraphInstantiate)(&exec, graph, 0));
  ASSERT_CU(CU(cuGraphDestroy)(graph));
  EXPECT_EQ(destroyed, 0);
  ASSERT_CU(CU(cuGraphExecDestroy)(exec));
  while (destroyed == 0) std::this_thread::yield();  // the driver may call it later
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace weir::conformance
