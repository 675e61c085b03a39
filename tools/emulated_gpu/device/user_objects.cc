#include "tools/emulated_gpu/device/user_objects.h"

#include <algorithm>
#include <mutex>

#include "tools/emulated_gpu/device/graphs.h"
#include "tools/emulated_gpu/device/handles.h"
#include "tools/emulated_gpu/device/reports.h"

namespace weir::emulated {
namespace {

auto& objects = *new HandleTable<UserObject, 1 << 16>;

UserObject* Find(CUuserObject handle, const char* call) {
  UserObject* object = objects.Find(handle);
  if (object == nullptr) Report("%s: user object %p is not alive", call, static_cast<void*>(handle));
  return object;
}

void Release(UserObject* object, unsigned references) {
  if (object->references.fetch_sub(references) != references) return;
  const CUhostFn destroy = object->destroy;
  void* argument = object->argument;
  objects.Kill(object);
  destroy(argument);
}

}  // namespace

Status CreateUserObject(CUuserObject* handle, void* argument, CUhostFn destroy, unsigned references) {
  if (handle == nullptr || destroy == nullptr || references == 0) return CUDA_ERROR_INVALID_VALUE;
  UserObject* object = objects.Make();
  if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  object->references = references;
  object->destroy = destroy;
  object->argument = argument;
  *handle = reinterpret_cast<CUuserObject>(object);
  return CUDA_SUCCESS;
}

Status RetainUserObject(CUuserObject handle, unsigned references) {
  UserObject* object = Find(handle, "user object retain");
  if (object == nullptr || references == 0) return CUDA_ERROR_INVALID_VALUE;
  object->references += references;
  return CUDA_SUCCESS;
}

Status ReleaseUserObject(CUuserObject handle, unsigned references) {
  UserObject* object = Find(handle, "user object release");
  if (object == nullptr || references == 0) return CUDA_ERROR_INVALID_VALUE;
  Release(object, references);
  return CUDA_SUCCESS;
}

Status RetainForGraph(CUgraph graph_handle, CUuserObject handle, unsigned references, bool move) {
  Graph* graph = FindGraph(graph_handle, "graph retain user object");
  UserObject* object = Find(handle, "graph retain user object");
  if (graph == nullptr || object == nullptr || references == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!move) object->references += references;
  std::lock_guard<std::mutex> lock(GraphMutex());
  graph->objects.insert(graph->objects.end(), references, object);
  return CUDA_SUCCESS;
}

Status ReleaseForGraph(CUgraph graph_handle, CUuserObject handle, unsigned references) {
  Graph* graph = FindGraph(graph_handle, "graph release user object");
  UserObject* object = Find(handle, "graph release user object");
  if (graph == nullptr || object == nullptr || references == 0) return CUDA_ERROR_INVALID_VALUE;
  {
    std::lock_guard<std::mutex> lock(GraphMutex());
    std::vector<UserObject*>& held = graph->objects;
    if (std::count(held.begin(), held.end(), object) < static_cast<ptrdiff_t>(references)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < references; ++i) held.erase(std::find(held.begin(), held.end(), object));
  }
  Release(object, references);
  return CUDA_SUCCESS;
}

void RetainUserObjects(const std::vector<UserObject*>& retained) {
  for (UserObject* object : retained) ++object->references;
}

void ReleaseUserObjects(const std::vector<UserObject*>& released) {
  for (UserObject* object : released) Release(object, 1);
}

}  // namespace weir::emulated
