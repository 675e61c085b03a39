// Driver result codes as statuses: which ones mean memory is short, which mean wait, which mean the context is gone.
#ifndef WEIR_ALLOCATOR_CUDA_CUDA_STATUS_H_
#define WEIR_ALLOCATOR_CUDA_CUDA_STATUS_H_

#include "absl/status/status.h"

namespace weir {

// `result` is a CUresult. `call` names the driver function; `words` is the driver's own text (may be null).
absl::Status CudaStatus(int result, const char* call, const char* words);

}  // namespace weir

#endif  // WEIR_ALLOCATOR_CUDA_CUDA_STATUS_H_
