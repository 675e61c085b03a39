// The runtime API beside the driver API: runtime API documentation, "Interactions with the CUDA Driver API",
// "Error Handling", "Memory Management".
#include <cuda_runtime_api.h>

#include <cstring>

#include "tests/conformance/order_fixture.h"

namespace weir::conformance {
namespace {

class Runtime : public Order {
 protected:
  void SetUp() override {
    Order::SetUp();
    if (*WhyNoRuntime() != '\0') GTEST_SKIP() << WhyNoRuntime();
    CUDART(cudaGetLastError)();
  }
};

// "Interactions with the CUDA Driver API": one primary context, and handles and pointers are interchangeable.
TEST_F(Runtime, HandlesAndPointers_AreThoseOfTheDriver) {
  const CUstream stream = NewStream();
  const CUevent event = NewEvent();
  void* memory = nullptr;
  ASSERT_EQ(CUDART(cudaMalloc)(&memory, 4096), cudaSuccess);
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  ASSERT_EQ(CUDART(cudaMemsetAsync)(memory, 0x12, 4096, stream), cudaSuccess);
  ASSERT_EQ(CUDART(cudaEventRecord)(event, stream), cudaSuccess);
  ASSERT_CU(CU(cuEventSynchronize)(event));
  EXPECT_EQ(Count(address, 0x12, 4096), 4096u);
  ASSERT_CU(CU(cuMemFree)(address));
}

// cudaFree, cudaFreeHost: "If devPtr is 0, no operation is performed."
TEST_F(Runtime, Free_OfNothing_Succeeds) {
  EXPECT_EQ(CUDART(cudaFree)(nullptr), cudaSuccess);
  EXPECT_EQ(CUDART(cudaFreeHost)(nullptr), cudaSuccess);
}

// cudaGetLastError: the last error of this thread, and back to success; cudaPeekAtLastError leaves it.
TEST_F(Runtime, LastError_StaysUntilItIsRead) {
  size_t free = 0, total = 0;
  ASSERT_EQ(CUDART(cudaMemGetInfo)(&free, &total), cudaSuccess);
  void* memory = nullptr;
  EXPECT_EQ(CUDART(cudaMalloc)(&memory, 2 * total), cudaErrorMemoryAllocation);
  EXPECT_EQ(CUDART(cudaDeviceSynchronize)(), cudaSuccess);
  EXPECT_EQ(CUDART(cudaPeekAtLastError)(), cudaErrorMemoryAllocation);
  EXPECT_EQ(CUDART(cudaGetLastError)(), cudaErrorMemoryAllocation);
  EXPECT_EQ(CUDART(cudaGetLastError)(), cudaSuccess);
}

// cudaPointerGetAttributes: cudaMemoryTypeUnregistered for what CUDA does not know, and success.
TEST_F(Runtime, PointerAttributes_TellTheKindOfMemory) {
  std::vector<char> ordinary(4096);
  cudaPointerAttributes told{};
  ASSERT_EQ(CUDART(cudaPointerGetAttributes)(&told, ordinary.data()), cudaSuccess);
  EXPECT_EQ(told.type, cudaMemoryTypeUnregistered);
  ASSERT_EQ(CUDART(cudaPointerGetAttributes)(&told, NewPinned(4096) + 10), cudaSuccess);
  EXPECT_EQ(told.type, cudaMemoryTypeHost);
  const CUdeviceptr memory = NewMemory(4096);
  ASSERT_EQ(CUDART(cudaPointerGetAttributes)(&told, reinterpret_cast<void*>(memory + 10)), cudaSuccess);
  EXPECT_EQ(told.type, cudaMemoryTypeDevice);
  EXPECT_EQ(told.device, 0);
}

// cudaMemcpyDefault: the addresses tell the direction.
TEST_F(Runtime, CopyWithoutDirection_FollowsTheAddresses) {
  uint8_t* pinned = NewPinned(4096);
  void* memory = reinterpret_cast<void*>(NewMemory(4096));
  std::memset(pinned, 0x21, 2048);
  ASSERT_EQ(CUDART(cudaMemcpy)(memory, pinned, 2048, cudaMemcpyDefault), cudaSuccess);
  ASSERT_EQ(CUDART(cudaMemcpy)(pinned + 2048, memory, 2048, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(std::memcmp(pinned, pinned + 2048, 2048), 0);
}

// cudaMemcpy2DAsync: rows with a pitch at each end.
TEST_F(Runtime, CopyOfRows_GathersThem) {
  const CUstream stream = NewStream();
  const CUdeviceptr memory = NewMemory(64 * 256);
  Write(memory, 0x31, 64 * 256);
  uint8_t* pinned = NewPinned(64 * 100);
  ASSERT_EQ(CUDART(cudaMemcpy2DAsync)(pinned, 100, reinterpret_cast<void*>(memory), 256, 90, 64,
                                      cudaMemcpyDeviceToHost, stream),
            cudaSuccess);
  ASSERT_EQ(CUDART(cudaStreamSynchronize)(stream), cudaSuccess);
  EXPECT_EQ(std::count(pinned, pinned + 64 * 100, 0x31), 64 * 90);
  EXPECT_EQ(pinned[89], 0x31);
  EXPECT_EQ(pinned[90], 0);
}

// cudaStreamQuery, cudaEventQuery: cudaErrorNotReady while work is left.
TEST_F(Runtime, Queries_TellWhetherWorkIsLeft) {
  const CUstream stream = NewStream();
  const CUevent event = NewEvent();
  Gate& gate = Held(stream);
  ASSERT_EQ(CUDART(cudaEventRecord)(event, stream), cudaSuccess);
  EXPECT_EQ(CUDART(cudaStreamQuery)(stream), cudaErrorNotReady);
  EXPECT_EQ(CUDART(cudaEventQuery)(event), cudaErrorNotReady);
  gate.Open();
  EXPECT_EQ(CUDART(cudaEventSynchronize)(event), cudaSuccess);
  EXPECT_EQ(CUDART(cudaEventQuery)(event), cudaSuccess);
}

// cudaGetDevice, cudaSetDevice: INVALID_DEVICE for an ordinal that is none.
TEST_F(Runtime, Device_ThatIsNot_IsInvalid) {
  int device = -1, count = 0;
  ASSERT_EQ(CUDART(cudaGetDevice)(&device), cudaSuccess);
  EXPECT_EQ(device, 0);
  ASSERT_EQ(CUDART(cudaGetDeviceCount)(&count), cudaSuccess);
  EXPECT_EQ(CUDART(cudaSetDevice)(count), cudaErrorInvalidDevice);
  EXPECT_EQ(CUDART(cudaGetLastError)(), cudaErrorInvalidDevice);
}

}  // namespace
}  // namespace weir::conformance
