// Memory of a pool is there between its allocation and its free, in the order of streams. All else is reported.
#include "tests/emulated_gpu/driver_under_test.h"

namespace weir::emulated {
namespace {

class PoolOrder : public EmulatedDevice {
 protected:
  static CUdeviceptr Allocated(CUstream stream) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CU(cuMemAllocAsync)(&address, kMiB, stream), CUDA_SUCCESS);
    return address;
  }
  static CUresult Write(CUdeviceptr address, CUstream stream) {
    return CU(cuMemsetD8Async)(address, 1, 4096, stream);
  }
  static void Wait(CUstream after, CUstream before) {
    const CUevent event = NewEvent();
    ASSERT_EQ(CU(cuEventRecord)(event, before), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamWaitEvent)(after, event, 0), CUDA_SUCCESS);
  }
};

TEST_F(PoolOrder, Use_NotOrderedAfterTheAllocation_IsReported) {
  const CUstream one = NewStream(), other = NewStream();
  const CUdeviceptr memory = Allocated(one);
  ASSERT_EQ(Write(memory, other), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(PoolOrder, Free_NotOrderedAfterAUse_IsReported) {
  const CUstream one = NewStream(), other = NewStream();
  const CUdeviceptr memory = Allocated(one);
  Wait(other, one);
  ASSERT_EQ(Write(memory, other), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 0u);
  ASSERT_EQ(CU(cuMemFreeAsync)(memory, one), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(PoolOrder, UseAfterTheFree_IsReported) {
  const CUstream stream = NewStream();
  const CUdeviceptr memory = Allocated(stream);
  ASSERT_EQ(CU(cuMemFreeAsync)(memory, stream), CUDA_SUCCESS);
  EXPECT_EQ(Write(memory, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(PoolOrder, OrderedUseAndReuse_AreFine) {
  const CUstream one = NewStream(), other = NewStream();
  for (int i = 0; i < 4; ++i) {
    const CUdeviceptr memory = Allocated(one);
    ASSERT_EQ(Write(memory, one), CUDA_SUCCESS);
    Wait(other, one);
    ASSERT_EQ(Write(memory, other), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemFreeAsync)(memory, other), CUDA_SUCCESS);
  }
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(PoolOrder, FreeTwice_IsReported) {
  const CUstream stream = NewStream();
  const CUdeviceptr memory = Allocated(stream);
  ASSERT_EQ(CU(cuMemFreeAsync)(memory, stream), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFreeAsync)(memory, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(NewReports(), 1u);
}

// The pool gives its memory back to the device before an allocation of another kind fails.
TEST_F(PoolOrder, UnusedMemory_ServesOtherPools) {
  const CUstream stream = NewStream();
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(CU(cuDeviceGetDefaultMemPool)(&pool, 0), CUDA_SUCCESS);
  cuuint64_t all = UINT64_MAX;
  ASSERT_EQ(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all), CUDA_SUCCESS);
  CUdeviceptr most = 0, again = 0;
  ASSERT_EQ(CU(cuMemAllocAsync)(&most, 192 * kMiB, stream), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemFreeAsync)(most, stream), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_EQ(ReadCounters().used_bytes, 192 * kMiB);
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  ASSERT_EQ(CU(cuMemPoolCreate)(&pool, &properties), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemAllocFromPoolAsync)(&again, 128 * kMiB, pool, stream), CUDA_SUCCESS);
  EXPECT_EQ(ReadCounters().used_bytes, 128 * kMiB);
}

}  // namespace
}  // namespace weir::emulated
