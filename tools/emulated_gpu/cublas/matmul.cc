// cuBLASLt: descriptors, the algorithm question and the product, whose matrices are checked by their layouts.
#pragma GCC visibility push(default)
#include <cublasLt.h>
#pragma GCC visibility pop

#include <cstring>
#include <vector>

#include "tools/emulated_gpu/cublas/matrices.h"
#include "tools/emulated_gpu/device/lifecycle.h"

using namespace weir::emulated;

namespace {

// What the opaque handles point to.
struct Layout {
  cudaDataType type;
  uint64_t rows, cols;
  int64_t ld;
  int32_t order = CUBLASLT_ORDER_COL, batch = 1;
  int64_t stride = 0;
};
struct Description {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  // Vectors and scales by attribute; only their first element is looked at.
  const void* pointers[64] = {};
  cudaDataType scale = CUDA_R_32F;  // of alpha and beta
  int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
};
struct Preference {};

Layout* Of(cublasLtMatrixLayout_t handle) { return reinterpret_cast<Layout*>(handle); }
Description* Of(cublasLtMatmulDesc_t handle) { return reinterpret_cast<Description*>(handle); }
Preference* Of(cublasLtMatmulPreference_t handle) { return reinterpret_cast<Preference*>(handle); }

bool IsPointer(cublasLtMatmulDescAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_C_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_D_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_AMAX_D_POINTER:
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER:
    case CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER:
      return true;
    default:
      return false;
  }
}

template <typename T>
void Take(T* field, const void* value, size_t size) {
  if (size == sizeof *field) std::memcpy(field, value, size);
}

void SetLayout(Layout* layout, cublasLtMatrixLayoutAttribute_t attribute, const void* value, size_t size) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return Take(&layout->type, value, size);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return Take(&layout->order, value, size);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return Take(&layout->rows, value, size);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return Take(&layout->cols, value, size);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return Take(&layout->ld, value, size);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return Take(&layout->batch, value, size);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return Take(&layout->stride, value, size);
    default:
      return;  // nothing that changes where the matrix lies
  }
}

Matrix MatrixOf(const void* base, cublasLtMatrixLayout_t handle, Use use) {
  const Layout& layout = *Of(handle);
  auto rows = static_cast<int64_t>(layout.rows), cols = static_cast<int64_t>(layout.cols);
  if (layout.order == CUBLASLT_ORDER_ROW) std::swap(rows, cols);
  return {base, rows, cols, layout.ld, BytesOf(layout.type), use, layout.batch, layout.stride};
}

// With a beta of zero C is not read, and its layout need not fit it.
bool ReadsC(const Description& product, const void* beta) {
  static constexpr char kZero[16] = {};
  return beta == nullptr || product.pointer_mode != CUBLASLT_POINTER_MODE_HOST ||
         std::memcmp(beta, kZero, BytesOf(product.scale)) != 0;
}

// The result has m by n elements; what a has besides m is k.
Operations OperationsOf(const Description& description, const Layout& a, const Layout& d) {
  const auto m = static_cast<int64_t>(d.rows), n = static_cast<int64_t>(d.cols);
  const int64_t k = m == 0 ? 0 : static_cast<int64_t>(a.rows * a.cols) / m;
  return ProductOperations(m, n, k, d.batch, a.type, description.compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}

template <typename T, typename Handle>
cublasStatus_t Create(Handle* handle, T* made) {
  if (handle == nullptr) {
    delete made;
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *handle = reinterpret_cast<Handle>(made);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Handle>
cublasStatus_t Destroy(Handle handle) {
  delete Of(handle);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr || UsePrimary() != CUDA_SUCCESS) return CUBLAS_STATUS_NOT_INITIALIZED;
  static char room[64];
  *handle = reinterpret_cast<cublasLtHandle_t>(room);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* descriptor, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  auto* made = new Description;
  made->compute = compute;
  made->scale = scale;
  return Create(descriptor, made);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor) { return Destroy(descriptor); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t size) {
  if (descriptor == nullptr || value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  Description& product = *Of(descriptor);
  if (IsPointer(attribute)) Take(&product.pointers[attribute], value, size);
  if (attribute == CUBLASLT_MATMUL_DESC_SCALE_TYPE) Take(&product.scale, value, size);
  if (attribute == CUBLASLT_MATMUL_DESC_POINTER_MODE) Take(&product.pointer_mode, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  return Create(layout, new Layout{type, rows, cols, ld});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return Destroy(layout); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t size) {
  if (layout == nullptr || value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  SetLayout(Of(layout), attribute, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return Create(preference, new Preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return Destroy(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t, const void* value,
                                                    size_t) {
  return preference == nullptr || value == nullptr ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

// One algorithm that needs no workspace.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  if (wanted < 1 || results == nullptr || count == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  std::memset(&results[0], 0, sizeof results[0]);
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1.0f;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t descriptor, const void*, const void* a,
                              cublasLtMatrixLayout_t layout_a, const void* b, cublasLtMatrixLayout_t layout_b,
                              const void* beta, const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t*, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  if (descriptor == nullptr || layout_a == nullptr || layout_b == nullptr || layout_d == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  thread_local std::vector<Matrix> matrices;  // keeps its room
  matrices = {MatrixOf(a, layout_a, Use::kRead), MatrixOf(b, layout_b, Use::kRead),
              MatrixOf(d, layout_d, Use::kWrite), Workspace(workspace, workspace_bytes)};
  if (c != nullptr && c != d && layout_c != nullptr && ReadsC(*Of(descriptor), beta))
    matrices.push_back(MatrixOf(c, layout_c, Use::kRead));
  for (const void* pointer : Of(descriptor)->pointers) {
    if (pointer != nullptr) matrices.push_back(Scalar(pointer, 1, Use::kUnknown));
  }
  return ComputeOnStream("cublasLtMatmul", stream, matrices.data(), matrices.size(),
                         OperationsOf(*Of(descriptor), *Of(layout_a), *Of(layout_d)));
}
}
