// Counted objects that graphs keep alive (cuUserObjectCreate). Any thread; their lock is a leaf.
#ifndef WEIR_EMULATED_GPU_DEVICE_USER_OBJECTS_H_
#define WEIR_EMULATED_GPU_DEVICE_USER_OBJECTS_H_

#include <atomic>
#include <vector>

#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

struct UserObject {
  std::atomic<bool> alive{false};
  std::atomic<unsigned> references{0};
  CUhostFn destroy = nullptr;
  void* argument = nullptr;
};

Status CreateUserObject(CUuserObject* handle, void* argument, CUhostFn destroy, unsigned references);
Status RetainUserObject(CUuserObject handle, unsigned references);
// The last release calls the destroyer on this thread.
Status ReleaseUserObject(CUuserObject handle, unsigned references);

// `move`: the caller's own references go to the graph.
Status RetainForGraph(CUgraph graph, CUuserObject handle, unsigned references, bool move);
Status ReleaseForGraph(CUgraph graph, CUuserObject handle, unsigned references);

// One reference for each entry. Release without the lock of graphs: it calls the user's code.
void RetainUserObjects(const std::vector<UserObject*>& objects);
void ReleaseUserObjects(const std::vector<UserObject*>& objects);

}  // namespace weir::emulated

#endif
