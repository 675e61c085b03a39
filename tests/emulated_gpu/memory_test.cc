// Rules of allocations, pinned memory, pointers and copies, in both doubles.
#include <cuda_runtime_api.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/emulated_gpu/driver_under_test.h"

namespace weir::emulated {
namespace {

#define CUDART(name) (::weir::emulated::Named<decltype(::name)>(#name))

class Memory : public EmulatedDevice {
 protected:
  static CUdeviceptr Allocate(size_t size) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CU(cuMemAlloc)(&address, size), CUDA_SUCCESS);
    return address;
  }
};

TEST_F(Memory, Copies_ThereAndBack_GiveTheSameBytes) {
  std::string sent(3 * kMiB, 'a'), received(sent.size(), 'b');
  for (size_t i = 0; i < sent.size(); i += 101) sent[i] = static_cast<char>(i);
  const CUdeviceptr here = Allocate(sent.size()), there = Allocate(sent.size());
  ASSERT_EQ(CU(cuMemcpyHtoD)(here, sent.data(), sent.size()), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpyDtoD)(there, here, sent.size()), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpyDtoH)(received.data(), there, received.size()), CUDA_SUCCESS);
  EXPECT_EQ(sent, received);
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(Memory, Free_Twice_IsReported) {
  const CUdeviceptr address = Allocate(100);
  ASSERT_EQ(CU(cuMemFree)(address), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree)(address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Memory, FreedAddresses_AreReusedAsLateAsPossible) {
  const CUdeviceptr first = Allocate(4096);
  ASSERT_EQ(CU(cuMemFree)(first), CUDA_SUCCESS);
  for (int i = 0; i < 100; ++i) {
    const CUdeviceptr other = Allocate(4096);
    EXPECT_NE(other, first);
    ASSERT_EQ(CU(cuMemFree)(other), CUDA_SUCCESS);
  }
}

TEST_F(Memory, Copy_IntoFreedMemory_IsReportedAndSticks) {
  const CUdeviceptr address = Allocate(4096);
  ASSERT_EQ(CU(cuMemFree)(address), CUDA_SUCCESS);
  char byte = 1;
  EXPECT_EQ(CU(cuMemcpyHtoD)(address, &byte, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(NewReports(), 1u);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(CUDART(cudaDeviceSynchronize)(), cudaErrorIllegalAddress);
}

TEST_F(Memory, Allocations_OfBothDoubles_ShareOneDevice) {
  void* address = nullptr;
  ASSERT_EQ(CUDART(cudaMalloc)(&address, 200 * kMiB), cudaSuccess);
  CUdeviceptr more = 0;
  EXPECT_EQ(CU(cuMemAlloc)(&more, 100 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  size_t free = 0, total = 0;
  ASSERT_EQ(CU(cuMemGetInfo)(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 256 * kMiB);
  EXPECT_EQ(free, 56 * kMiB);
  EXPECT_EQ(CU(cuMemFree)(reinterpret_cast<CUdeviceptr>(address)), CUDA_SUCCESS);
}

TEST_F(Memory, LastError_IsKeptPerCallAndClearedByReading) {
  void* address = nullptr;
  ASSERT_EQ(CUDART(cudaMalloc)(&address, 300 * kMiB), cudaErrorMemoryAllocation);
  EXPECT_EQ(address, nullptr);
  ASSERT_EQ(CUDART(cudaDeviceSynchronize)(), cudaSuccess);
  EXPECT_EQ(CUDART(cudaPeekAtLastError)(), cudaErrorMemoryAllocation);
  EXPECT_EQ(CUDART(cudaGetLastError)(), cudaErrorMemoryAllocation);
  EXPECT_EQ(CUDART(cudaGetLastError)(), cudaSuccess);
}

TEST_F(Memory, PointerAttributes_TellWhereAnAddressLies) {
  const CUdeviceptr device = Allocate(4096);
  void* pinned = nullptr;
  ASSERT_EQ(CU(cuMemHostAlloc)(&pinned, 4096, 0), CUDA_SUCCESS);
  std::vector<char> pageable(4096);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(CUDART(cudaPointerGetAttributes)(&attributes, reinterpret_cast<void*>(device + 4095)),
            cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  ASSERT_EQ(CUDART(cudaPointerGetAttributes)(&attributes, static_cast<char*>(pinned) + 1), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  ASSERT_EQ(CUDART(cudaPointerGetAttributes)(&attributes, pageable.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

TEST_F(Memory, HostRegistration_FollowsItsRules) {
  std::vector<char> bytes(3 * 4096);
  ASSERT_EQ(CU(cuMemHostRegister)(bytes.data(), 8192, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemHostRegister)(bytes.data() + 4096, 8192, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(CU(cuMemHostUnregister)(bytes.data() + 4096), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(CU(cuMemHostUnregister)(bytes.data()), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemHostUnregister)(bytes.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(Memory, Memset32_RepeatsTheValue) {
  const CUdeviceptr address = Allocate(64);
  ASSERT_EQ(CU(cuMemsetD32)(address, 0x01020304, 16), CUDA_SUCCESS);
  unsigned values[16] = {};
  ASSERT_EQ(CU(cuMemcpyDtoH)(values, address, sizeof values), CUDA_SUCCESS);
  for (const unsigned value : values) EXPECT_EQ(value, 0x01020304u);
}

TEST_F(Memory, RawLaunch_WithKernelsCpu_IsAnErrorByName) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(CU(cuModuleLoadData)(&module, "any image"), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuModuleGetFunction)(&function, module, "my_kernel"), CUDA_SUCCESS);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(CU(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("my_kernel"), std::string::npos);
  EXPECT_EQ(NewReports(), 1u);
}

}  // namespace
}  // namespace weir::emulated
