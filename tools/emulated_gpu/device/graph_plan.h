// What an executable graph runs: a graph as it was when it was instantiated. Values.
//
// Nodes are spread over lanes, each a sequence in which every node comes after the one before it, so that a lane is a
// stream and only what crosses lanes has to be waited for. Lane 0 is the stream that the graph is launched on.
#ifndef WEIR_EMULATED_GPU_DEVICE_GRAPH_PLAN_H_
#define WEIR_EMULATED_GPU_DEVICE_GRAPH_PLAN_H_

#include <cstdint>
#include <vector>

#include "tools/emulated_gpu/device/graphs.h"

namespace weir::emulated {

struct PlannedNode {
  GraphWork work;
  std::vector<uint32_t> after;  // earlier nodes of the plan
  uint32_t lane = 0;
  GraphNode* source = nullptr;  // to name it by; it may be gone
};

struct Plan {
  std::vector<PlannedNode> nodes;  // each after those that it comes after
  uint32_t lanes = 0;
};

// Child graphs become part of the plan, between two empty nodes.
Plan PlanOfLocked(const Graph& graph);

// Whether a graph may take the place of the one that `running` was made from; if not, what kind of change is in the way, and
// where.
CUgraphExecUpdateResultInfo ComparePlans(const Plan& running, const Plan& updated);

}  // namespace weir::emulated

#endif
