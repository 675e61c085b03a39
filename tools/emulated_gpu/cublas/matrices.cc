#include "tools/emulated_gpu/cublas/matrices.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "tools/emulated_gpu/device/addresses.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/launches.h"
#include "tools/emulated_gpu/device/memory.h"
#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/streams.h"

namespace weir::emulated {
namespace {

constexpr int64_t kMostRanges = 64;  // per call; a longer batch is one range that is only in flight

size_t Hull(const Matrix& matrix) {
  return ((matrix.batch - 1) * matrix.stride + (matrix.cols - 1) * matrix.ld + matrix.rows) * matrix.element;
}

void AddAccesses(const Matrix& matrix, std::vector<Access>* accesses) {
  const auto begin = reinterpret_cast<uintptr_t>(matrix.base);
  const size_t row = matrix.rows * matrix.element, pitch = matrix.ld * matrix.element;
  if (matrix.batch == 1 || matrix.stride == 0) {
    accesses->push_back({begin, row, matrix.use, pitch, static_cast<size_t>(matrix.cols)});
  } else if (matrix.stride == matrix.ld * matrix.cols) {
    accesses->push_back({begin, row, matrix.use, pitch, static_cast<size_t>(matrix.cols * matrix.batch)});
  } else if (matrix.batch <= kMostRanges) {
    for (int64_t i = 0; i < matrix.batch; ++i) {
      accesses->push_back({begin + i * matrix.stride * matrix.element, row, matrix.use, pitch,
                           static_cast<size_t>(matrix.cols)});
    }
  } else {
    accesses->push_back({begin, Hull(matrix), Use::kUnknown});
  }
}

cublasStatus_t Note(const char* call, CUstream handle, const Matrix* matrices, size_t count,
                    const Operations* operations) {
  Stream* stream = FindStream(handle, call);
  if (stream == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  thread_local std::vector<Access> accesses;  // keeps its room
  accesses.clear();
  WeirEmulatedWork work{};
  for (size_t i = 0; i < count; ++i) {
    const Matrix& matrix = matrices[i];
    const auto begin = reinterpret_cast<uintptr_t>(matrix.base);
    if (matrix.rows <= 0 || matrix.cols <= 0 || matrix.batch <= 0 || !InDeviceWindow(begin)) continue;
    const Touch touch = matrix.use == Use::kRead ? Touch::kRead : Touch::kWrite;
    if (CheckTouch(begin, Hull(matrix), call, touch, CurrentDevice()) != CUDA_SUCCESS)
      return CUBLAS_STATUS_EXECUTION_FAILED;
    AddAccesses(matrix, &accesses);
    if (matrix.use != Use::kUnknown) {
      work.bytes +=
          static_cast<double>(matrix.rows * matrix.cols * matrix.batch) * static_cast<double>(matrix.element);
    }
  }
  if (operations == nullptr) {
    NoteLaunchOfOp(*stream, call, accesses.data(), accesses.size());
    return CUBLAS_STATUS_SUCCESS;
  }
  work.operations = operations->count;
  work.type = operations->type;
  NoteLibraryLaunch(*stream, call, accesses.data(), accesses.size(), work);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

Matrix Vector(const void* base, int64_t n, int64_t increment, size_t element, Use use) {
  return {base, 1, n, std::abs(increment), element, use};
}

Matrix Scalar(const void* base, size_t element, Use use) { return {base, 1, 1, 1, element, use}; }

Matrix Operand(const void* base, cublasOperation_t operation, int64_t rows, int64_t cols, int64_t ld,
               size_t element) {
  const bool transposed = operation != CUBLAS_OP_N;
  return {base, transposed ? cols : rows, transposed ? rows : cols, ld, element, Use::kRead};
}

Matrix Workspace(const void* base, size_t bytes) {
  const auto size = static_cast<int64_t>(base == nullptr ? 0 : bytes);
  return {base, size, 1, size, 1, Use::kUnknown};
}

size_t BytesOf(cudaDataType type) {
  switch (type) {
    case CUDA_R_16F:
    case CUDA_R_16BF:
    case CUDA_C_8I:
    case CUDA_C_8U:
    case CUDA_R_16I:
    case CUDA_R_16U:
      return 2;
    case CUDA_R_32F:
    case CUDA_R_32I:
    case CUDA_R_32U:
    case CUDA_C_16F:
    case CUDA_C_16BF:
    case CUDA_C_16I:
    case CUDA_C_16U:
      return 4;
    case CUDA_R_64F:
    case CUDA_R_64I:
    case CUDA_R_64U:
    case CUDA_C_32F:
    case CUDA_C_32I:
    case CUDA_C_32U:
      return 8;
    case CUDA_C_64F:
    case CUDA_C_64I:
    case CUDA_C_64U:
      return 16;
    default:
      return 1;
  }
}

Operations ProductOperations(int64_t m, int64_t n, int64_t k, int64_t batch, cudaDataType type, bool tf32) {
  const double count = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                       static_cast<double>(batch);
  switch (type) {
    case CUDA_R_64F:
      return {count, WEIR_EMULATED_FP64};
    case CUDA_C_64F:
      return {4 * count, WEIR_EMULATED_FP64};
    case CUDA_C_32F:
      return {4 * count, tf32 ? WEIR_EMULATED_TF32 : WEIR_EMULATED_FP32};
    case CUDA_R_16BF:
      return {count, WEIR_EMULATED_BF16};
    case CUDA_R_16F:
      return {count, WEIR_EMULATED_FP16};
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
      return {count, WEIR_EMULATED_FP8};
    case CUDA_R_8I:
      return {count, WEIR_EMULATED_INT8};
    default:
      return {count, tf32 ? WEIR_EMULATED_TF32 : WEIR_EMULATED_FP32};
  }
}

cublasStatus_t ComputeOnStream(const char* call, CUstream stream, const Matrix* matrices, size_t count,
                               Operations operations) {
  if (LaunchLibraryCall(call) != CUDA_SUCCESS) return CUBLAS_STATUS_NOT_SUPPORTED;
  return Note(call, stream, matrices, count, &operations);
}

cublasStatus_t ComputeForOp(const char* call, CUstream stream, const Matrix* matrices, size_t count) {
  if (LaunchLibraryCall(call) != CUDA_SUCCESS) return CUBLAS_STATUS_NOT_SUPPORTED;
  return Note(call, stream, matrices, count, nullptr);
}

cublasStatus_t Compute(const char* call, cublasHandle_t handle, std::initializer_list<Matrix> matrices,
                       Operations operations) {
  if (LaunchLibraryCall(call) != CUDA_SUCCESS) return CUBLAS_STATUS_NOT_SUPPORTED;
  CUstream stream = nullptr;
  std::array<Matrix, 8> all;
  if (!PlaceOfHandle(handle, call, &stream, &all[0])) return CUBLAS_STATUS_NOT_INITIALIZED;
  std::copy(matrices.begin(), matrices.end(), all.begin() + 1);
  return Note(call, stream, all.data(), matrices.size() + 1, &operations);
}

}  // namespace weir::emulated
