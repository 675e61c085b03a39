// The stream an op of the calling thread will run on, asked live and never cached.
#ifndef WEIR_PYTORCH_PLUGIN_STREAMS_H_
#define WEIR_PYTORCH_PLUGIN_STREAMS_H_

#include <c10/cuda/CUDAStream.h>

namespace weir::plugin {

inline void* CurrentStream(int device) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)).stream();
}

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_STREAMS_H_
