// Two emulated devices: memory that kernels may not reach is a report, and each device has engines of its own.
#include <cuda_runtime_api.h>

#include "tests/emulated_gpu/driver_under_test.h"
#include "tools/emulated_gpu/device/clock_abi.h"

namespace weir::emulated {
namespace {

class Peers : public EmulatedDevice {
 protected:
  void SetUp() override {
    EmulatedDevice::SetUp();
    for (int device = 0; device < 2; ++device)
      ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&contexts_[device], device), CUDA_SUCCESS);
  }

  void Use(int device) { ASSERT_EQ(CU(cuCtxSetCurrent)(contexts_[device]), CUDA_SUCCESS); }
  CUdeviceptr NewMemory(int device, size_t size) {
    CUdeviceptr memory = 0;
    Use(device);
    EXPECT_EQ(CU(cuMemAlloc)(&memory, size), CUDA_SUCCESS);
    Use(0);
    return memory;
  }
  // A kernel of device 0 that writes there.
  static void Touch(CUdeviceptr address) {
    const WeirEmulatedAccess access{address, 256, WEIR_EMULATED_WRITE, 0, 1, 0, 1};
    Named<void(void*, const char*, const WeirEmulatedAccess*, size_t)>("weir_emulated_test_kernel")(
        nullptr, "kernel", &access, 1);
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  }

  CUcontext contexts_[2] = {};
};

TEST_F(Peers, MemoryOfAPeer_WithoutAccess_IsReported) {
  const CUdeviceptr memory = NewMemory(1, 4096);
  Touch(memory);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Peers, MemoryOfAPeer_WithAccess_IsFine) {
  const CUdeviceptr memory = NewMemory(1, 4096);
  ASSERT_EQ(CU(cuCtxEnablePeerAccess)(contexts_[1], 0), CUDA_SUCCESS);
  Touch(memory);
  EXPECT_EQ(NewReports(), 0u);
  ASSERT_EQ(CU(cuCtxDisablePeerAccess)(contexts_[1]), CUDA_SUCCESS);
  Touch(memory);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Peers, MappingOfAPeer_IsReachedByWhatItsAccessNames) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {1}};
  CUmemGenericAllocationHandle frame = 0;
  CUdeviceptr address = 0;
  ASSERT_EQ(CU(cuMemCreate)(&frame, kFrame, &properties, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAddressReserve)(&address, kFrame, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemMap)(address, kFrame, 0, frame, 0), CUDA_SUCCESS);
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {1}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_EQ(CU(cuMemSetAccess)(address, kFrame, &access, 1), CUDA_SUCCESS);
  Touch(address);
  EXPECT_EQ(NewReports(), 1u);
  access.location.id = 0;
  ASSERT_EQ(CU(cuMemSetAccess)(address, kFrame, &access, 1), CUDA_SUCCESS);
  Touch(address);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Peers, Launch_OnAStreamOfAnotherDevice_IsRefused) {
  Use(1);
  const CUstream stream = NewStream();
  Use(0);
  static const char stub = 0;
  const auto launch =
      Named<cudaError_t(const void*, dim3, dim3, void**, size_t, cudaStream_t)>("cudaLaunchKernel");
  EXPECT_EQ(launch(&stub, dim3(1), dim3(1), nullptr, 0, stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(Peers, EnginesOfTwoDevices_WorkAtTheSameTime) {
  constexpr size_t kSize = 200 * kMiB;
  const CUdeviceptr memory[2] = {NewMemory(0, kSize), NewMemory(1, kSize)};
  const int64_t start = Named<int64_t()>("weir_emulated_now_ns")();
  const auto done = [start] {
    WeirEmulatedUsage usage{};
    Named<void(WeirEmulatedUsage*)>("weir_emulated_usage")(&usage);
    return usage.done - start;
  };
  const auto fill = [&](int device) {
    Use(device);
    ASSERT_EQ(CU(cuMemsetD8Async)(memory[device], 1, kSize, nullptr), CUDA_SUCCESS);
  };
  fill(0);
  const int64_t one = done();
  fill(1);
  EXPECT_LT(done(), one + one / 2);
  fill(1);
  EXPECT_GT(done(), one + one / 2);
}

}  // namespace
}  // namespace weir::emulated
