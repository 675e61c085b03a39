// Streams, events, host functions.
#include "tools/emulated_gpu/device/streams.h"

#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (stream == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return CreateStream(stream, flags, priority);
}

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  WEIR_DRIVER_FAULT_POINT();
  return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy(CUstream stream) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return DestroyStream(stream);
}

CUresult cuStreamQuery(CUstream stream) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return QueryStream(stream);
}

CUresult cuStreamSynchronize(CUstream stream) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return SynchronizeStream(stream);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return WaitForEvent(stream, event, (flags & CU_EVENT_WAIT_EXTERNAL) != 0);
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  const Stream* stream = FindStream(handle, "cuStreamGetPriority");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  const Stream* stream = FindStream(handle, "cuStreamGetFlags");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  const Stream* stream = FindStream(handle, "cuStreamGetId");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *id = stream->id;
  return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return LaunchHostFunction(stream, function, argument);
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return CreateEvent(event, flags);
}

CUresult cuEventDestroy(CUevent event) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return DestroyEvent(event);
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return RecordEvent(event, stream);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return RecordEvent(event, stream, (flags & CU_EVENT_RECORD_EXTERNAL) != 0);
}

CUresult cuEventQuery(CUevent event) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return QueryEvent(event);
}

CUresult cuEventSynchronize(CUevent event) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return SynchronizeEvent(event);
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return ElapsedMilliseconds(milliseconds, start, end);
}
