// What one node of a graph does when the graph is launched. Values; pointers are those that the work was enqueued with,
// looked at when the graph runs and not before.
#ifndef WEIR_EMULATED_GPU_DEVICE_GRAPH_WORK_H_
#define WEIR_EMULATED_GPU_DEVICE_GRAPH_WORK_H_

#include <cstddef>
#include <memory>
#include <variant>
#include <vector>

#include "tools/emulated_gpu/device/copies.h"
#include "tools/emulated_gpu/device/launches.h"
#include "tools/emulated_gpu/device/order.h"

namespace weir::emulated {

struct Plan;

struct EmptyWork {};

// A kernel, or a call of a library that is one.
struct KernelWork {
  const char* what = "";           // it and `op` live as long as the process
  const char* op = "";             // of torch, or ""
  const Kernel* kernel = nullptr;  // null: a library's
  Shape shape{};
  std::vector<char> arguments;  // laid out as the kernel wants them; empty: not known
  std::vector<Access> accesses;
  Nanos time = 0;  // on the SMs, without what every kernel takes
};

struct CopyWork {
  void* to;
  const void* from;
  Rows rows;
  Direction direction;
};

struct FillWork {
  void* to;
  unsigned value;
  size_t element;
  Rows rows;
};

struct HostFunctionWork {
  void (*function)(void*);
  void* argument;
};

// Of events with the flag that makes them external to the capture.
struct EventRecordWork {
  CUevent event;
};
struct EventWaitWork {
  CUevent event;
};

// A graph that was launched on a stream that captures.
struct ChildGraphWork {
  std::shared_ptr<const Plan> plan;
};

using GraphWork = std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostFunctionWork, EventRecordWork,
                               EventWaitWork, ChildGraphWork>;

CUgraphNodeType TypeOf(const GraphWork& work);

}  // namespace weir::emulated

#endif
