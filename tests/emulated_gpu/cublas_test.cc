// What cuBLAS calls touch, by their signatures (correctness R17).
#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstdlib>

#include "tests/emulated_gpu/driver_under_test.h"

namespace weir::emulated {
namespace {

#define CUBLAS(name) (::weir::emulated::Named<decltype(::name)>(#name))

class Cublas : public EmulatedDevice {
 protected:
  void SetUp() override {
    setenv("WEIR_KERNELS", "none", 1);
    EmulatedDevice::SetUp();
    ASSERT_EQ(CUBLAS(cublasCreate_v2)(&handle_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(CU(cuMemAlloc)(&memory_, kBytes), CUDA_SUCCESS);
  }

  float* At(size_t element) const { return reinterpret_cast<float*>(memory_) + element; }

  // C (m x n) = A (m x k) * B (k x n), all with the leading dimension `ld`.
  cublasStatus_t Multiply(int m, int n, int k, int ld, float* a, float* b, float* c) {
    const float one = 1;
    return CUBLAS(cublasSgemm_v2)(handle_, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a, ld, b, ld, &one, c,
                                  ld);
  }

  static constexpr size_t kBytes = 1 << 16, kElements = kBytes / 4;
  cublasHandle_t handle_ = nullptr;
  CUdeviceptr memory_ = 0;
};

TEST_F(Cublas, Product_InsideItsAllocations_IsFine) {
  EXPECT_EQ(Multiply(64, 64, 64, 64, At(0), At(4096), At(8192)), CUBLAS_STATUS_SUCCESS);
  // The last column ends where its rows end, not where its pitch does.
  EXPECT_EQ(Multiply(32, 64, 32, 64, At(0), At(0), At(kElements - 63 * 64 - 32)), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(Cublas, Product_OneElementTooFar_IsReported) {
  EXPECT_EQ(Multiply(32, 64, 32, 64, At(0), At(0), At(kElements - 63 * 64 - 31)),
            CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Cublas, StridedBatch_BeyondItsAllocation_IsReported) {
  const float one = 1;
  const auto multiply = [&](int batch) {
    return CUBLAS(cublasSgemmStridedBatched)(handle_, CUBLAS_OP_N, CUBLAS_OP_T, 32, 32, 32, &one, At(0), 32,
                                             0, At(0), 32, 0, &one, At(1024), 32, 1024, batch);
  };
  EXPECT_EQ(multiply(15), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(NewReports(), 0u);
  EXPECT_EQ(multiply(16), CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Cublas, TwoStreams_OnTheSameResult_AreReported_OnOtherRowsNot) {
  const CUstream other = NewStream();
  EXPECT_EQ(Multiply(32, 32, 32, 128, At(0), At(0), At(64)), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(CUBLAS(cublasSetStream_v2)(handle_, other), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(32, 32, 32, 128, At(0), At(0), At(96)), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(NewReports(), 0u);
  EXPECT_EQ(Multiply(32, 32, 32, 128, At(0), At(0), At(90)), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Cublas, LtProduct_WithAFreedBias_IsReported) {
  CUdeviceptr bias = 0;
  ASSERT_EQ(CU(cuMemAlloc)(&bias, 256), CUDA_SUCCESS);
  cublasLtMatmulDesc_t product = nullptr;
  ASSERT_EQ(CUBLAS(cublasLtMatmulDescCreate)(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  const void* pointer = reinterpret_cast<void*>(bias);
  ASSERT_EQ(CUBLAS(cublasLtMatmulDescSetAttribute)(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pointer,
                                                   sizeof pointer),
            CUBLAS_STATUS_SUCCESS);
  cublasLtMatrixLayout_t layout = nullptr;
  ASSERT_EQ(CUBLAS(cublasLtMatrixLayoutCreate)(&layout, CUDA_R_32F, 64, 64, 64), CUBLAS_STATUS_SUCCESS);
  const float one = 1;
  const auto multiply = [&] {
    return CUBLAS(cublasLtMatmul)(nullptr, product, &one, At(0), layout, At(0), layout, &one, At(4096),
                                  layout, At(4096), layout, nullptr, nullptr, 0, nullptr);
  };
  EXPECT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(NewReports(), 0u);
  ASSERT_EQ(CU(cuMemFree)(bias), CUDA_SUCCESS);
  EXPECT_EQ(multiply(), CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(NewReports(), 1u);
  EXPECT_EQ(CUBLAS(cublasLtMatrixLayoutDestroy)(layout), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(CUBLAS(cublasLtMatmulDescDestroy)(product), CUBLAS_STATUS_SUCCESS);
}

TEST_F(Cublas, LtProduct_WithABetaOfZero_DoesNotReadC) {
  CUdeviceptr freed = 0;
  ASSERT_EQ(CU(cuMemAlloc)(&freed, kFrame), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemFree)(freed), CUDA_SUCCESS);
  cublasLtMatmulDesc_t product = nullptr;
  ASSERT_EQ(CUBLAS(cublasLtMatmulDescCreate)(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  cublasLtMatrixLayout_t layout = nullptr;
  ASSERT_EQ(CUBLAS(cublasLtMatrixLayoutCreate)(&layout, CUDA_R_32F, 64, 64, 64), CUBLAS_STATUS_SUCCESS);
  const auto multiply = [&](float beta) {
    return CUBLAS(cublasLtMatmul)(nullptr, product, &beta, At(0), layout, At(0), layout, &beta,
                                  reinterpret_cast<void*>(freed), layout, At(4096), layout, nullptr, nullptr,
                                  0, nullptr);
  };
  EXPECT_EQ(multiply(0), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(NewReports(), 0u);
  EXPECT_EQ(multiply(1), CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(NewReports(), 1u);
  EXPECT_EQ(CUBLAS(cublasLtMatrixLayoutDestroy)(layout), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(CUBLAS(cublasLtMatmulDescDestroy)(product), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace weir::emulated
