// Executable graphs: instantiation, update, launch. Any thread.
//
// A launch puts the nodes on the stream, and on streams of its own where they do not depend on each other, through the same
// checks of order, memory and launch arguments as a call would, with what is mapped and alive now. It comes after the
// launches of the same executable graph before it. The host pays for one launch.
#ifndef WEIR_EMULATED_GPU_DEVICE_GRAPH_LAUNCH_H_
#define WEIR_EMULATED_GPU_DEVICE_GRAPH_LAUNCH_H_

#include <cstdint>

#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

Status InstantiateGraph(CUgraphExec* handle, CUgraph graph, uint64_t flags);
Status FlagsOfExec(CUgraphExec handle, uint64_t* flags);
Status UpdateExec(CUgraphExec handle, CUgraph graph, CUgraphExecUpdateResultInfo* result);
Status LaunchGraph(CUgraphExec handle, CUstream stream);
Status UploadGraph(CUgraphExec handle, CUstream stream);
Status DestroyExec(CUgraphExec handle);  // what it launched goes on

}  // namespace weir::emulated

#endif
