#include "tools/emulated_gpu/device/graph_plan.h"

#include <algorithm>

#include "tools/emulated_gpu/device/addresses.h"

namespace weir::emulated {
namespace {

// Gives nodes their lanes: the lane of something that they come after and that is the newest there, else a new one.
class Lanes {
 public:
  void Add(PlannedNode& node, const std::vector<PlannedNode>& nodes) {
    std::vector<size_t> past(tails_.size());  // by lane: how many of its nodes come before this one
    for (const uint32_t before : node.after) {
      const std::vector<size_t>& other = pasts_[before];
      for (size_t lane = 0; lane < other.size(); ++lane) past[lane] = std::max(past[lane], other[lane]);
      const uint32_t lane = nodes[before].lane;
      past[lane] = std::max(past[lane], other[lane] + 1);
    }
    node.lane = static_cast<uint32_t>(tails_.size());
    for (size_t lane = 0; lane < tails_.size(); ++lane) {
      if (past[lane] != tails_[lane]) continue;
      node.lane = static_cast<uint32_t>(lane);
      break;
    }
    if (node.lane == tails_.size()) {
      tails_.push_back(0);
      past.push_back(0);
    }
    ++tails_[node.lane];
    pasts_.push_back(std::move(past));
  }

  uint32_t count() const { return static_cast<uint32_t>(tails_.size()); }

 private:
  std::vector<size_t> tails_;               // nodes of each lane
  std::vector<std::vector<size_t>> pasts_;  // of each node
};

class Planner {
 public:
  void Add(GraphWork work, std::vector<uint32_t> after, GraphNode* source) {
    PlannedNode node{std::move(work), std::move(after), 0, source};
    lanes_.Add(node, plan_.nodes);
    plan_.nodes.push_back(std::move(node));
  }

  void AddChild(const Plan& child, const std::vector<uint32_t>& after, GraphNode* source) {
    Add(EmptyWork{}, after, source);
    const uint32_t entry = newest();
    std::vector<bool> is_last(child.nodes.size(), true);
    for (const PlannedNode& node : child.nodes) {
      std::vector<uint32_t> shifted;
      for (const uint32_t before : node.after) {
        shifted.push_back(before + entry + 1);
        is_last[before] = false;
      }
      if (shifted.empty()) shifted.push_back(entry);
      Add(node.work, std::move(shifted), source);
    }
    std::vector<uint32_t> last;
    for (uint32_t i = 0; i < is_last.size(); ++i) {
      if (is_last[i]) last.push_back(i + entry + 1);
    }
    if (last.empty()) last.push_back(entry);
    Add(EmptyWork{}, std::move(last), source);
  }

  uint32_t newest() const { return static_cast<uint32_t>(plan_.nodes.size() - 1); }

  Plan Take() {
    plan_.lanes = lanes_.count();
    return std::move(plan_);
  }

 private:
  Plan plan_;
  Lanes lanes_;
};

bool OnDevice(const void* address) { return InDeviceWindow(reinterpret_cast<uintptr_t>(address)); }

// Whether the parameters of a node may become those of `updated`, a node of the same type.
bool MayBecome(const GraphWork& running, const GraphWork& updated) {
  if (const auto* copy = std::get_if<CopyWork>(&running)) {
    const auto& other = std::get<CopyWork>(updated);
    return OnDevice(copy->to) == OnDevice(other.to) && OnDevice(copy->from) == OnDevice(other.from);
  }
  if (const auto* fill = std::get_if<FillWork>(&running)) {
    const Rows &rows = fill->rows, &other = std::get<FillWork>(updated).rows;
    return rows.height == other.height && (rows.height == 1 || rows.width == other.width);
  }
  return true;
}

CUgraphExecUpdateResultInfo Difference(CUgraphExecUpdateResult result, GraphNode* node) {
  CUgraphExecUpdateResultInfo info{};
  info.result = result;
  info.errorNode = node == nullptr ? nullptr : HandleOf(node);
  return info;
}

}  // namespace

Plan PlanOfLocked(const Graph& graph) {
  Planner planner;
  std::vector<uint32_t> index;  // in the plan, of each node
  for (GraphNode* node : graph.nodes) {
    std::vector<uint32_t> after;
    for (const GraphNode* before : node->after) after.push_back(index[before->number]);
    if (const auto* child = std::get_if<ChildGraphWork>(&node->work)) {
      planner.AddChild(*child->plan, after, node);
    } else {
      planner.Add(node->work, std::move(after), node);
    }
    index.push_back(planner.newest());
  }
  return planner.Take();
}

CUgraphExecUpdateResultInfo ComparePlans(const Plan& running, const Plan& updated) {
  if (running.nodes.size() != updated.nodes.size()) {
    return Difference(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  }
  for (size_t i = 0; i < running.nodes.size(); ++i) {
    const PlannedNode &node = running.nodes[i], &other = updated.nodes[i];
    if (node.after != other.after) {
      return Difference(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, other.source);
    }
    if (TypeOf(node.work) != TypeOf(other.work)) {
      return Difference(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, other.source);
    }
    if (!MayBecome(node.work, other.work)) {
      return Difference(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, other.source);
    }
  }
  return Difference(CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr);
}

}  // namespace weir::emulated
