// A graph as text for Graphviz. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_GRAPH_TEXT_H_
#define WEIR_EMULATED_GPU_DEVICE_GRAPH_TEXT_H_

#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

// Writes the nodes with what they do, and their edges. OPERATING_SYSTEM when the file cannot be written.
Status WriteDot(CUgraph handle, const char* path);

}  // namespace weir::emulated

#endif
