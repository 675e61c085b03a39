// Where a stream or event stands in a capture (capture.h). A value; guarded by the lock of graphs.h.
#ifndef WEIR_EMULATED_GPU_DEVICE_CAPTURE_BRANCH_H_
#define WEIR_EMULATED_GPU_DEVICE_CAPTURE_BRANCH_H_

#include <memory>
#include <vector>

namespace weir::emulated {

struct Capture;
struct GraphNode;

struct CaptureBranch {
  std::shared_ptr<Capture> capture;  // null: in none
  std::vector<GraphNode*> after;     // what the next work comes after
};

}  // namespace weir::emulated

#endif
