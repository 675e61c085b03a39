// What a cuBLAS call reads and writes, from its signature: checked against what is mapped, and noted as work of the
// stream. Any thread.
#ifndef WEIR_EMULATED_GPU_CUBLAS_MATRICES_H_
#define WEIR_EMULATED_GPU_CUBLAS_MATRICES_H_

#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

#include <cstdint>
#include <initializer_list>

#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/status.h"
#include "tools/emulated_gpu/device/torch_abi.h"

namespace weir::emulated {

// As stored: `cols` columns of `rows` elements of `element` bytes, `ld` elements apart; `batch` such matrices, `stride`
// elements apart. Addresses of the host (scalars, results) are not looked at.
struct Matrix {
  const void* base = nullptr;
  int64_t rows = 0, cols = 0, ld = 0;
  size_t element = 0;
  Use use = Use::kRead;
  int64_t batch = 1, stride = 0;
};

// n elements, `increment` apart; a negative increment runs backwards over the same range.
Matrix Vector(const void* base, int64_t n, int64_t increment, size_t element, Use use);
// One element.
Matrix Scalar(const void* base, size_t element, Use use);
// A matrix that a product uses as `rows` by `cols`, transposed or not.
Matrix Operand(const void* base, cublasOperation_t operation, int64_t rows, int64_t cols, int64_t ld,
               size_t element);

// Room that a routine may use as it likes: it is in flight, that is all.
Matrix Workspace(const void* base, size_t bytes);

size_t BytesOf(cudaDataType type);  // of one element, at least 1

// The routine `call`: INVALID_VALUE for a dead handle or stream, NOT_SUPPORTED with kernels cpu, EXECUTION_FAILED when
// memory is not there (reported by name).
// `operations` of what `type` says: for the clock, with the bytes of the matrices.
struct Operations {
  double count = 0;
  int type = WEIR_EMULATED_FP32;
};
cublasStatus_t Compute(const char* call, cublasHandle_t handle, std::initializer_list<Matrix> matrices,
                       Operations operations = {});
cublasStatus_t ComputeOnStream(const char* call, CUstream stream, const Matrix* matrices, size_t count,
                               Operations operations);
// As ComputeOnStream, but for the clock the call does what the op around it does.
cublasStatus_t ComputeForOp(const char* call, CUstream stream, const Matrix* matrices, size_t count);
// Of an m by k times k by n product, `batch` times, whose operands are of `type`; `tf32`: fp32 may be rounded.
Operations ProductOperations(int64_t m, int64_t n, int64_t k, int64_t batch, cudaDataType type, bool tf32);

// handles.cc: false, and reported, when the handle is not alive.
bool AllowsTf32(cublasHandle_t handle);  // its math mode
bool PlaceOfHandle(cublasHandle_t handle, const char* call, CUstream* stream, Matrix* workspace);

}  // namespace weir::emulated

#endif
