// The cuBLAS routines that torch calls for products and vectors: their matrices by signature. Routines that are not here
// are launches by name, without a look at what they touch (driver/refusals.cc).
#include "tools/emulated_gpu/cublas/matrices.h"
#include "tools/emulated_gpu/device/op_work.h"

using namespace weir::emulated;

namespace {

struct Sizes {
  int64_t m, n, k;
};
struct Side {
  const void* base;
  cudaDataType type;
  int64_t ld, stride = 0;
};

cublasStatus_t Product(const char* call, cublasHandle_t handle, cublasOperation_t transpose_a,
                       cublasOperation_t transpose_b, Sizes sizes, Side a, Side b, Side c,
                       int64_t batch = 1) {
  Matrix first = Operand(a.base, transpose_a, sizes.m, sizes.k, a.ld, BytesOf(a.type));
  Matrix second = Operand(b.base, transpose_b, sizes.k, sizes.n, b.ld, BytesOf(b.type));
  Matrix result{c.base, sizes.m, sizes.n, c.ld, BytesOf(c.type), Use::kWrite};
  first.batch = second.batch = result.batch = batch;
  first.stride = a.stride;
  second.stride = b.stride;
  result.stride = c.stride;
  return Compute(call, handle, {first, second, result},
                 ProductOperations(sizes.m, sizes.n, sizes.k, batch, a.type,
                                   a.type == CUDA_R_32F && AllowsTf32(handle)));
}

// Arrays of matrices lie in device memory: the arrays are checked, what they lead to is not seen.
cublasStatus_t ProductOfArrays(const char* call, cublasHandle_t handle, Sizes sizes, cudaDataType type,
                               const void* const* a, const void* const* b, const void* const* c, int batch) {
  const auto array = [&](const void* const* base) {
    return Matrix{base, batch, 1, batch, sizeof(void*), Use::kRead};
  };
  NoteBlindLaunch();
  return Compute(call, handle, {array(a), array(b), array(c)},
                 ProductOperations(sizes.m, sizes.n, sizes.k, batch, type, false));
}

}  // namespace

// NOLINTBEGIN: four routines that differ in the type only.
#define WEIR_PRODUCTS(letter, Type, type)                                                                    \
  cublasStatus_t cublas##letter##gemm_v2(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,  \
                                         int m, int n, int k, const Type*, const Type* a, int lda,           \
                                         const Type* b, int ldb, const Type*, Type* c, int ldc) {            \
    return Product("cublas" #letter "gemm_v2", handle, ta, tb, {m, n, k}, {a, type, lda}, {b, type, ldb},    \
                   {c, type, ldc});                                                                          \
  }                                                                                                          \
  cublasStatus_t cublas##letter##gemmStridedBatched(                                                         \
      cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const Type*,   \
      const Type* a, int lda, long long stride_a, const Type* b, int ldb, long long stride_b, const Type*,   \
      Type* c, int ldc, long long stride_c, int batch) {                                                     \
    return Product("cublas" #letter "gemmStridedBatched", handle, ta, tb, {m, n, k},                         \
                   {a, type, lda, stride_a}, {b, type, ldb, stride_b}, {c, type, ldc, stride_c}, batch);     \
  }                                                                                                          \
  cublasStatus_t cublas##letter##gemmBatched(cublasHandle_t handle, cublasOperation_t, cublasOperation_t,    \
                                             int m, int n, int k, const Type*, const Type* const a[], int,   \
                                             const Type* const b[], int, const Type*, Type* const c[], int,  \
                                             int batch) {                                                    \
    return ProductOfArrays("cublas" #letter "gemmBatched", handle, {m, n, k}, type,                          \
                           reinterpret_cast<const void* const*>(a), reinterpret_cast<const void* const*>(b), \
                           reinterpret_cast<const void* const*>(c), batch);                                  \
  }                                                                                                          \
  cublasStatus_t cublas##letter##gemv_v2(cublasHandle_t handle, cublasOperation_t transpose, int m, int n,   \
                                         const Type*, const Type* a, int lda, const Type* x,                 \
                                         int increment_x, const Type*, Type* y, int increment_y) {           \
    const bool plain = transpose == CUBLAS_OP_N;                                                             \
    return Compute("cublas" #letter "gemv_v2", handle,                                                       \
                   {{a, m, n, lda, sizeof(Type), Use::kRead},                                                \
                    Vector(x, plain ? n : m, increment_x, sizeof(Type), Use::kRead),                         \
                    Vector(y, plain ? m : n, increment_y, sizeof(Type), Use::kWrite)});                      \
  }                                                                                                          \
  cublasStatus_t cublas##letter##trsm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t,     \
                                         cublasOperation_t, cublasDiagType_t, int m, int n, const Type*,     \
                                         const Type* a, int lda, Type* b, int ldb) {                         \
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;                                                      \
    return Compute(                                                                                          \
        "cublas" #letter "trsm_v2", handle,                                                                  \
        {{a, order, order, lda, sizeof(Type), Use::kRead}, {b, m, n, ldb, sizeof(Type), Use::kWrite}});      \
  }                                                                                                          \
  cublasStatus_t cublas##letter##axpy_v2(cublasHandle_t handle, int n, const Type*, const Type* x,           \
                                         int increment_x, Type* y, int increment_y) {                        \
    return Compute("cublas" #letter "axpy_v2", handle,                                                       \
                   {Vector(x, n, increment_x, sizeof(Type), Use::kRead),                                     \
                    Vector(y, n, increment_y, sizeof(Type), Use::kWrite)});                                  \
  }

#define WEIR_DOT(name, Type)                                                                               \
  cublasStatus_t cublas##name##_v2(cublasHandle_t handle, int n, const Type* x, int increment_x,           \
                                   const Type* y, int increment_y, Type* result) {                         \
    return Compute(                                                                                        \
        "cublas" #name, handle,                                                                            \
        {Vector(x, n, increment_x, sizeof(Type), Use::kRead),                                              \
         Vector(y, n, increment_y, sizeof(Type), Use::kRead), Scalar(result, sizeof(Type), Use::kWrite)}); \
  }

extern "C" {

WEIR_PRODUCTS(S, float, CUDA_R_32F)
WEIR_PRODUCTS(D, double, CUDA_R_64F)
WEIR_PRODUCTS(C, cuComplex, CUDA_C_32F)
WEIR_PRODUCTS(Z, cuDoubleComplex, CUDA_C_64F)
WEIR_DOT(Sdot, float)
WEIR_DOT(Ddot, double)
WEIR_DOT(Cdotu, cuComplex)
WEIR_DOT(Cdotc, cuComplex)
WEIR_DOT(Zdotu, cuDoubleComplex)
WEIR_DOT(Zdotc, cuDoubleComplex)
// NOLINTEND

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                            int k, const void*, const void* a, cudaDataType type_a, int lda, const void* b,
                            cudaDataType type_b, int ldb, const void*, void* c, cudaDataType type_c, int ldc,
                            cublasComputeType_t, cublasGemmAlgo_t) {
  return Product("cublasGemmEx", handle, ta, tb, {m, n, k}, {a, type_a, lda}, {b, type_b, ldb},
                 {c, type_c, ldc});
}

cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                             int k, const float*, const void* a, cudaDataType type_a, int lda, const void* b,
                             cudaDataType type_b, int ldb, const float*, void* c, cudaDataType type_c,
                             int ldc) {
  return Product("cublasSgemmEx", handle, ta, tb, {m, n, k}, {a, type_a, lda}, {b, type_b, ldb},
                 {c, type_c, ldc});
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
                                          int m, int n, int k, const void*, const void* a,
                                          cudaDataType type_a, int lda, long long stride_a, const void* b,
                                          cudaDataType type_b, int ldb, long long stride_b, const void*,
                                          void* c, cudaDataType type_c, int ldc, long long stride_c,
                                          int batch, cublasComputeType_t, cublasGemmAlgo_t) {
  return Product("cublasGemmStridedBatchedEx", handle, ta, tb, {m, n, k}, {a, type_a, lda, stride_a},
                 {b, type_b, ldb, stride_b}, {c, type_c, ldc, stride_c}, batch);
}

cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void* x, cudaDataType type_x, int increment_x,
                           const void* y, cudaDataType type_y, int increment_y, void* result,
                           cudaDataType type_result, cudaDataType) {
  return Compute("cublasDotEx", handle,
                 {Vector(x, n, increment_x, BytesOf(type_x), Use::kRead),
                  Vector(y, n, increment_y, BytesOf(type_y), Use::kRead),
                  Scalar(result, BytesOf(type_result), Use::kWrite)});
}
}
