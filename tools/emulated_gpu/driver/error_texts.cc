// Names and texts of error codes. A code that is not listed has none, as one that cuda.h does not define.
#include "tools/emulated_gpu/driver/driver.h"

namespace {

struct ErrorText {
  CUresult error;
  const char *name, *text;
};

#define WEIR_ERROR(name, text) \
  { CUDA_##name, "CUDA_" #name, text }
constexpr ErrorText kErrors[] = {
    WEIR_ERROR(SUCCESS, "no error"),
    WEIR_ERROR(ERROR_INVALID_VALUE, "invalid argument"),
    WEIR_ERROR(ERROR_OUT_OF_MEMORY, "out of memory"),
    WEIR_ERROR(ERROR_NOT_INITIALIZED, "initialization error"),
    WEIR_ERROR(ERROR_DEINITIALIZED, "driver shutting down"),
    WEIR_ERROR(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    WEIR_ERROR(ERROR_INVALID_DEVICE, "invalid device ordinal"),
    WEIR_ERROR(ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    WEIR_ERROR(ERROR_INVALID_CONTEXT, "invalid device context"),
    WEIR_ERROR(ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    WEIR_ERROR(ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    WEIR_ERROR(ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    WEIR_ERROR(ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices"),
    WEIR_ERROR(ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    WEIR_ERROR(ERROR_INVALID_HANDLE, "invalid resource handle"),
    WEIR_ERROR(ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    WEIR_ERROR(ERROR_NOT_FOUND, "named symbol not found"),
    WEIR_ERROR(ERROR_NOT_READY, "device not ready"),
    WEIR_ERROR(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    WEIR_ERROR(ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    WEIR_ERROR(ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    WEIR_ERROR(ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process"),
    WEIR_ERROR(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    WEIR_ERROR(ERROR_ASSERT, "device-side assert triggered"),
    WEIR_ERROR(ERROR_HOST_MEMORY_ALREADY_REGISTERED,
               "part or all of the requested memory range is already mapped"),
    WEIR_ERROR(ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
    WEIR_ERROR(ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    WEIR_ERROR(ERROR_NOT_PERMITTED, "operation not permitted"),
    WEIR_ERROR(ERROR_NOT_SUPPORTED, "operation not supported"),
    WEIR_ERROR(ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    WEIR_ERROR(ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    WEIR_ERROR(ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    WEIR_ERROR(ERROR_STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences"),
    WEIR_ERROR(ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"),
    WEIR_ERROR(ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    WEIR_ERROR(ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
    WEIR_ERROR(ERROR_STREAM_CAPTURE_WRONG_THREAD,
               "attempt to terminate a thread-local capture sequence from another thread"),
    WEIR_ERROR(ERROR_GRAPH_EXEC_UPDATE_FAILURE,
               "the graph update was not performed because it included changes which violated constraints "
               "specific to instantiated graph update"),
    WEIR_ERROR(ERROR_STREAM_CAPTURE_IMPLICIT,
               "operation would make the legacy stream depend on a capturing blocking stream"),
    WEIR_ERROR(ERROR_CAPTURED_EVENT,
               "operation not permitted on an event last recorded in a capturing stream"),
    WEIR_ERROR(ERROR_UNKNOWN, "unknown error"),
};
#undef WEIR_ERROR

const ErrorText* Find(CUresult error) {
  for (const ErrorText& known : kErrors) {
    if (known.error == error) return &known;
  }
  return nullptr;
}

}  // namespace

CUresult cuGetErrorName(CUresult error, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* known = Find(error);
  *name = known == nullptr ? nullptr : known->name;
  return known == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* known = Find(error);
  *text = known == nullptr ? nullptr : known->text;
  return known == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
