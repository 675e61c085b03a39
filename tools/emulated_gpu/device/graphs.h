// Graphs: nodes of work, and what comes after what. Any thread; one lock, a leaf, for all graphs, executable graphs and
// captures (capture.h).
//
// Handles are slots, as those of streams and events: a dead one is recognised and reported. The arrays that functions
// fill follow the driver's rule: a null array asks for the number alone, a short one is filled as far as it goes, the rest
// of a long one is set to null; `count` says how many there are.
#ifndef WEIR_EMULATED_GPU_DEVICE_GRAPHS_H_
#define WEIR_EMULATED_GPU_DEVICE_GRAPHS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tools/emulated_gpu/device/graph_work.h"
#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

struct Graph;
struct UserObject;

struct GraphNode {
  std::atomic<bool> alive{false};
  // guarded by the lock:
  Graph* graph = nullptr;
  size_t number = 0;  // in its graph, from 0
  std::vector<GraphNode*> after;
  GraphWork work;
  bool captured = false;          // and has to be joined to the stream where the capture began
  std::vector<void*> parameters;  // what cuGraphKernelNodeGetParams gave away
};

struct Graph {
  std::atomic<bool> alive{false};
  // guarded by the lock:
  std::vector<GraphNode*> nodes;     // the oldest first, so each after those that it comes after
  std::vector<UserObject*> objects;  // once for each reference
  bool open = false;                 // a capture adds to it
};

std::mutex& GraphMutex();

// Null result: reported, dead. `call` names the caller.
Graph* FindGraph(CUgraph handle, const char* call);
GraphNode* FindNode(CUgraphNode handle, const char* call);
inline CUgraph HandleOf(Graph* graph) { return reinterpret_cast<CUgraph>(graph); }
inline CUgraphNode HandleOf(GraphNode* node) { return reinterpret_cast<CUgraphNode>(node); }

Status CreateGraph(CUgraph* handle);
Status DestroyGraph(CUgraph handle);
Status CloneGraph(CUgraph* clone, CUgraph handle);
Status AddNode(CUgraphNode* node, CUgraph handle, const CUgraphNode* after, size_t count, GraphWork work);

Status NodesOf(CUgraph handle, CUgraphNode* nodes, size_t* count);
Status RootNodesOf(CUgraph handle, CUgraphNode* nodes, size_t* count);
Status EdgesOf(CUgraph handle, CUgraphNode* from, CUgraphNode* to, size_t* count);
Status DependenciesOf(CUgraphNode handle, CUgraphNode* nodes, size_t* count);
Status DependentsOf(CUgraphNode handle, CUgraphNode* nodes, size_t* count);
Status TypeOfNode(CUgraphNode handle, CUgraphNodeType* type);
// INVALID_VALUE for other nodes. The arguments stay the node's.
Status KernelOfNode(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* parameters);

// ---- with the lock held
Graph* NewGraphLocked();
void DestroyGraphLocked(Graph* graph);
GraphNode* NewNodeLocked(Graph* graph, std::vector<GraphNode*> after, GraphWork work);

}  // namespace weir::emulated

#endif
