#include "allocator/cuda/cuda_status.h"

#include <cuda.h>

#include "absl/strings/str_cat.h"

namespace weir {

absl::Status CudaStatus(int result, const char* call, const char* words) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  std::string text =
      absl::StrCat(call, " failed: ", words != nullptr ? words : "unknown error", " (", result, ")");
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError(text);
    case CUDA_ERROR_NOT_READY:
    case CUDA_ERROR_DEINITIALIZED:  // the process is exiting
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return absl::UnavailableError(text);
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_DEVICE:
      return absl::InvalidArgumentError(text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace weir
