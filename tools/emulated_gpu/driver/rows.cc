// Copies and memsets of rows with a pitch.
#include "tools/emulated_gpu/device/copies.h"
#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

namespace {

struct End {
  char* address;
  bool device, host;
};

// One end of a copy: its first byte. No address for a memory type that is not emulated (arrays).
End EndOf(CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y, size_t pitch) {
  const auto unified = reinterpret_cast<char*>(device) + y * pitch + x;
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return {static_cast<char*>(const_cast<void*>(host)) + y * pitch + x, false, true};
    case CU_MEMORYTYPE_DEVICE:
      return {unified, true, false};
    case CU_MEMORYTYPE_UNIFIED:
      return {unified, false, false};
    default:
      return {nullptr, false, false};
  }
}

Direction DirectionOf(const End& to, const End& from) {
  if (to.host && from.host) return Direction::kHostToHost;
  if (to.device && from.host) return Direction::kHostToDevice;
  if (to.host && from.device) return Direction::kDeviceToHost;
  return to.device && from.device ? Direction::kDeviceToDevice : Direction::kAny;
}

CUresult CopyRows(const CUDA_MEMCPY2D* copy, Call call, CUstream stream) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const size_t width = copy->WidthInBytes;
  if (copy->Height > 1 &&
      (copy->srcPitch < copy->srcXInBytes + width || copy->dstPitch < copy->dstXInBytes + width)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const End from = EndOf(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcXInBytes, copy->srcY,
                         copy->srcPitch);
  const End to = EndOf(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstXInBytes, copy->dstY,
                       copy->dstPitch);
  if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return Copy(to.address, from.address, {copy->dstPitch, copy->srcPitch, width, copy->Height},
              DirectionOf(to, from), call, stream);
}

CUresult FillRows(CUdeviceptr to, size_t pitch, unsigned value, size_t element, size_t width, size_t height,
                  Call call, CUstream stream) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (to % element != 0 || (height > 1 && (pitch % element != 0 || pitch < width * element))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return Fill(reinterpret_cast<void*>(to), value, element, {pitch, pitch, width * element, height}, call,
              stream);
}

}  // namespace

CUresult cuMemcpy2D(const CUDA_MEMCPY2D* copy) { return CopyRows(copy, Call::kBlocking, nullptr); }
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* copy) { return CopyRows(copy, Call::kBlocking, nullptr); }
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return CopyRows(copy, Call::kAsync, stream);
}

CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
  return FillRows(to, count * 2, value, 2, count, 1, Call::kBlocking, nullptr);
}
CUresult cuMemsetD2D8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
  return FillRows(to, pitch, value, 1, width, height, Call::kBlocking, nullptr);
}
CUresult cuMemsetD2D16(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height) {
  return FillRows(to, pitch, value, 2, width, height, Call::kBlocking, nullptr);
}
CUresult cuMemsetD2D32(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height) {
  return FillRows(to, pitch, value, 4, width, height, Call::kBlocking, nullptr);
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream) {
  return FillRows(to, pitch, value, 1, width, height, Call::kAsync, stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                            CUstream stream) {
  return FillRows(to, pitch, value, 2, width, height, Call::kAsync, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                            CUstream stream) {
  return FillRows(to, pitch, value, 4, width, height, Call::kAsync, stream);
}
