// Descriptors of tensors for the tensor memory accelerator. Kernels do not run, so a map holds only the address and what it is
// made of; the conditions are those of cuTensorMapEncodeTiled in the driver API documentation.
#include <cstring>

#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

namespace {

constexpr cuuint32_t kMostDimensions = 5;

bool Fits(cuuint32_t rank, const void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
          const cuuint32_t* steps) {
  if (rank == 0 || rank > kMostDimensions || address == nullptr || sizes == nullptr || steps == nullptr)
    return false;
  if (reinterpret_cast<uintptr_t>(address) % 16 != 0 || (rank > 1 && strides == nullptr)) return false;
  for (cuuint32_t i = 0; i < rank; ++i) {
    if (sizes[i] == 0 || sizes[i] > cuuint64_t{1} << 32 || steps[i] == 0 || steps[i] > 8) return false;
    if (i + 1 < rank && (strides[i] % 16 != 0 || strides[i] >= cuuint64_t{1} << 40)) return false;
  }
  return true;
}

void Write(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, const void* address) {
  std::memset(map, 0, sizeof *map);
  map->opaque[0] = reinterpret_cast<cuuint64_t>(address);
  map->opaque[1] = cuuint64_t{rank} << 32 | static_cast<cuuint32_t>(type);
}

CUresult Encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* steps) {
  if (map == nullptr || !Fits(rank, address, sizes, strides, steps)) return CUDA_ERROR_INVALID_VALUE;
  if (Settings().profile->major < 9) return CUDA_ERROR_NOT_SUPPORTED;
  Write(map, type, rank, address);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave, CUtensorMapSwizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  WEIR_DRIVER_NEEDS_INIT();
  if (box == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (cuuint32_t i = 0; i < rank && i < kMostDimensions; ++i) {
    if (box[i] == 0 || box[i] > 256) return CUDA_ERROR_INVALID_VALUE;
  }
  return Encode(map, type, rank, address, sizes, strides, steps);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                 const cuuint64_t* sizes, const cuuint64_t* strides, const int* lower,
                                 const int* upper, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t* steps, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  WEIR_DRIVER_NEEDS_INIT();
  if (lower == nullptr || upper == nullptr || rank < 3 || channels > 256 || pixels > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  return Encode(map, type, rank, address, sizes, strides, steps);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  WEIR_DRIVER_NEEDS_INIT();
  if (map == nullptr || reinterpret_cast<uintptr_t>(address) % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
  map->opaque[0] = reinterpret_cast<cuuint64_t>(address);
  return CUDA_SUCCESS;
}
