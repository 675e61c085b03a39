// Kernels and their order with copies: programming guide, "Streams"; driver API documentation, cuLaunchKernel,
// "Virtual Memory Management". What a kernel does wrong ends the context, so that is tried in a child.
#include "tests/conformance/kernels.h"

#include "tests/conformance/not_emulated.h"
#include "tests/conformance/order_fixture.h"

namespace weir::conformance {
namespace {

class KernelOrder : public Order {
 protected:
  void SetUp() override {
    Order::SetUp();
    SKIP_WHERE_EMULATED(Lacks::kKernels);
    ASSERT_CU(Load(&kernels_));
    flag_ = reinterpret_cast<uint32_t*>(NewPinned(4096));
  }

  void TearDown() override {
    if (flag_ == nullptr) return;
    Open();
    Order::TearDown();
    EXPECT_CU(CU(cuModuleUnload)(kernels_.module));
  }

  void Open() { __atomic_store_n(flag_, 1u, __ATOMIC_RELEASE); }

  Kernels kernels_;
  uint32_t* flag_ = nullptr;
};

// Kernels run in stream order, with copies and memsets too.
TEST_F(KernelOrder, KernelsAndCopies_OfOneStream_RunInOrder) {
  const CUstream stream = NewStream();
  const CUdeviceptr memory = NewMemory(kMiB), copy = NewMemory(kMiB);
  ASSERT_CU(Fill(kernels_, memory, 0x11111111, kMiB / 4, stream));
  ASSERT_CU(CU(cuMemcpyDtoDAsync)(copy, memory, kMiB, stream));
  ASSERT_CU(Fill(kernels_, memory, 0x22222222, kMiB / 4, stream));
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 0x33, 16, stream));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_EQ(Count(copy, 0x11, kMiB), kMiB);
  EXPECT_EQ(Count(memory, 0x22, kMiB), kMiB - 16);
  EXPECT_EQ(Count(memory, 0x33, kMiB), 16u);
}

// Launches return before the kernel has run, and queries tell.
TEST_F(KernelOrder, Launch_ReturnsWhileTheKernelRuns) {
  const CUstream stream = NewStream(), other = NewStream();
  const CUdeviceptr memory = NewMemory(4096);
  const CUevent event = NewEvent();
  ASSERT_CU(Hold(kernels_, flag_, stream));
  ASSERT_CU(CU(cuEventRecord)(event, stream));
  EXPECT_TRUE(Unfinished(stream));
  EXPECT_EQ(CU(cuEventQuery)(event), CUDA_ERROR_NOT_READY);
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 5, 4096, other));
  EXPECT_CU(CU(cuStreamSynchronize)(other));
  EXPECT_TRUE(Unfinished(stream));
  Open();
  EXPECT_CU(CU(cuEventSynchronize)(event));
}

// cuStreamWaitEvent between a kernel and a copy of another stream.
TEST_F(KernelOrder, Copy_OfAnotherStream_WaitsForTheKernel) {
  const CUstream writer = NewStream(), reader = NewStream();
  const CUdeviceptr memory = NewMemory(kMiB);
  uint8_t* pinned = NewPinned(kMiB);
  const CUevent written = NewEvent();
  ASSERT_CU(Hold(kernels_, flag_, writer));
  ASSERT_CU(Fill(kernels_, memory, 0x44444444, kMiB / 4, writer));
  ASSERT_CU(CU(cuEventRecord)(written, writer));
  ASSERT_CU(CU(cuStreamWaitEvent)(reader, written, 0));
  ASSERT_CU(CU(cuMemcpyDtoHAsync)(pinned, memory, kMiB, reader));
  EXPECT_TRUE(Unfinished(reader));
  EXPECT_EQ(pinned[0], 0);
  Open();
  ASSERT_CU(CU(cuStreamSynchronize)(reader));
  EXPECT_EQ(std::count(pinned, pinned + kMiB, 0x44), static_cast<long>(kMiB));
}

// CUDA_ERROR_ILLEGAL_ADDRESS: "leaves the process in an inconsistent state and any further CUDA work will return the
// same error."
TEST_F(KernelOrder, IllegalAddress_SticksToTheContext) {
  ExpectInChild([this] {
    CUdeviceptr reserved = 0, memory = 0;
    EXPECT_CU(CU(cuMemAddressReserve)(&reserved, 2 * kMiB, 0, 0, 0));
    EXPECT_CU(Fill(kernels_, reserved, 1, 16, nullptr));
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(CU(cuMemAlloc)(&memory, 4096), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
}

// cuModuleGetFunction: CUDA_ERROR_NOT_FOUND.
TEST_F(KernelOrder, Function_ThatIsNotInTheModule_IsNotFound) {
  CUfunction function = nullptr;
  EXPECT_EQ(CU(cuModuleGetFunction)(&function, kernels_.module, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
}

}  // namespace
}  // namespace weir::conformance
