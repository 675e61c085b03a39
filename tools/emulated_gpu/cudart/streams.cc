// Streams and events.
#include "tools/emulated_gpu/device/streams.h"

#include "tools/emulated_gpu/cudart/cudart.h"

using namespace weir::emulated;

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  WEIR_CUDART_FAULT_POINT();
  return cudaStreamCreateWithPriority(stream, 0, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (stream == nullptr) return Last(cudaErrorInvalidValue);
  return Last(CreateStream(stream, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(DestroyStream(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(QueryStream(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(SynchronizeStream(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(WaitForEvent(stream, event, (flags & cudaEventWaitExternal) != 0));
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  WEIR_CUDART_NEEDS_CONTEXT();
  const Stream* stream = FindStream(handle, "cudaStreamGetPriority");
  if (stream == nullptr) return Last(cudaErrorInvalidResourceHandle);
  *priority = stream->priority;
  return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned int* flags) {
  WEIR_CUDART_NEEDS_CONTEXT();
  const Stream* stream = FindStream(handle, "cudaStreamGetFlags");
  if (stream == nullptr) return Last(cudaErrorInvalidResourceHandle);
  *flags = stream->flags;
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(LaunchHostFunction(stream, function, argument));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  WEIR_CUDART_FAULT_POINT();
  return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (event == nullptr) return Last(cudaErrorInvalidValue);
  return Last(CreateEvent(event, flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(DestroyEvent(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(RecordEvent(event, stream));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(RecordEvent(event, stream, (flags & cudaEventRecordExternal) != 0));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(QueryEvent(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(SynchronizeEvent(event));
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (milliseconds == nullptr) return Last(cudaErrorInvalidValue);
  return Last(ElapsedMilliseconds(milliseconds, start, end));
}
