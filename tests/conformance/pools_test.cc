// Memory pools: driver API documentation, "Stream Ordered Memory Allocator", and programming guide, the chapter of that name.
#include "tests/conformance/order_fixture.h"

namespace weir::conformance {
namespace {

class Pools : public Order {
 protected:
  void SetUp() override {
    Order::SetUp();
    if (Attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0)
      GTEST_SKIP() << "the device has no memory pools";
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    ASSERT_CU(CU(cuMemPoolCreate)(&pool_, &properties));
    stream_ = NewStream();
  }

  void TearDown() override {
    if (pool_ != nullptr) {
      EXPECT_CU(CU(cuMemPoolDestroy)(pool_));
    }
    Order::TearDown();
  }

  CUdeviceptr Allocated(size_t size, CUstream stream) {
    CUdeviceptr address = 0;
    EXPECT_CU(CU(cuMemAllocFromPoolAsync)(&address, size, pool_, stream));
    return address;
  }

  cuuint64_t Number(CUmemPool_attribute attribute) {
    cuuint64_t value = 0;
    EXPECT_CU(CU(cuMemPoolGetAttribute)(pool_, attribute, &value));
    return value;
  }

  void Set(CUmemPool_attribute attribute, int value) {
    ASSERT_CU(CU(cuMemPoolSetAttribute)(pool_, attribute, &value));
  }
  void KeepAll() {
    cuuint64_t all = UINT64_MAX;
    ASSERT_CU(CU(cuMemPoolSetAttribute)(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  }

  static constexpr size_t kSize = 2 * kMiB;
  CUmemoryPool pool_ = nullptr;
  CUstream stream_ = nullptr;
};

TEST_F(Pools, Memory_IsThereInStreamOrder) {
  const CUdeviceptr memory = Allocated(4096, stream_);
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 7, 4096, stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_EQ(Count(memory, 7, 4096), 4096u);
  unsigned type = 0;
  EXPECT_CU(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
  EXPECT_CU(CU(cuMemFreeAsync)(memory, stream_));
}

// CU_MEMPOOL_ATTR_USED_MEM_CURRENT and its kin.
TEST_F(Pools, Attributes_CountWhatIsUsedAndReserved) {
  KeepAll();
  const CUdeviceptr memory = Allocated(kSize, stream_);
  EXPECT_EQ(Number(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), kSize);
  EXPECT_GE(Number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), kSize);
  ASSERT_CU(CU(cuMemFreeAsync)(memory, stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_EQ(Number(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  EXPECT_EQ(Number(CU_MEMPOOL_ATTR_USED_MEM_HIGH), kSize);
  EXPECT_GE(Number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), kSize) << "below the release threshold";
  cuuint64_t zero = 0;
  ASSERT_CU(CU(cuMemPoolSetAttribute)(pool_, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  EXPECT_EQ(Number(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0u);
}

// CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0 by default: "on the next call to stream, event or context synchronize".
TEST_F(Pools, UnusedMemory_GoesBackAtASynchronisation) {
  ASSERT_CU(CU(cuMemFreeAsync)(Allocated(kSize, stream_), stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_EQ(Number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
}

TEST_F(Pools, Trim_GivesBackWhatNobodyUses) {
  KeepAll();
  ASSERT_CU(CU(cuMemFreeAsync)(Allocated(kSize, stream_), stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_NE(Number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
  ASSERT_CU(CU(cuMemPoolTrimTo)(pool_, 0));
  EXPECT_EQ(Number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
}

// Memory that was freed in a stream is there for its next allocation, without a wait.
TEST_F(Pools, FreedMemory_IsReusedInItsStream) {
  KeepAll();
  Gate& gate = Held(stream_);
  const CUdeviceptr first = Allocated(kSize, stream_);
  ASSERT_CU(CU(cuMemFreeAsync)(first, stream_));
  const cuuint64_t reserved = Number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  const CUdeviceptr second = Allocated(kSize, stream_);
  EXPECT_EQ(Number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), reserved);
  gate.Open();
  ASSERT_CU(CU(cuMemFreeAsync)(second, stream_));
}

// Another stream takes it where an event orders it after the free, and must not where nothing does.
TEST_F(Pools, FreedMemory_IsReusedByAnotherStreamOnlyInOrder) {
  KeepAll();
  Set(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
  Set(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
  constexpr size_t kWhole = 32 * kMiB;  // whatever a pool takes at once, one such block fills it
  const CUstream other = NewStream();
  const CUevent freed = NewEvent();
  Gate& gate = Held(stream_);
  const CUdeviceptr first = Allocated(kWhole, stream_);
  ASSERT_CU(CU(cuMemFreeAsync)(first, stream_));
  ASSERT_CU(CU(cuEventRecord)(freed, stream_));
  const CUdeviceptr unordered = Allocated(kWhole, other);
  EXPECT_NE(unordered, first);
  const cuuint64_t reserved = Number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  ASSERT_CU(CU(cuStreamWaitEvent)(other, freed, 0));
  const CUdeviceptr ordered = Allocated(kWhole, other);
  EXPECT_EQ(Number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), reserved);
  gate.Open();
  for (const CUdeviceptr memory : {unordered, ordered}) ASSERT_CU(CU(cuMemFreeAsync)(memory, other));
}

// cuMemFree: also "pointers that were allocated by cuMemAllocAsync", after their work.
TEST_F(Pools, SynchronousFree_TakesPoolMemory) {
  const CUdeviceptr memory = Allocated(4096, stream_);
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 1, 4096, stream_));
  ASSERT_CU(CU(cuStreamSynchronize)(stream_));
  EXPECT_CU(CU(cuMemFree)(memory));
  EXPECT_EQ(Number(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
}

TEST_F(Pools, CurrentPool_IsTheDefaultUntilItIsSet) {
  CUmemoryPool standard = nullptr, current = nullptr;
  ASSERT_CU(CU(cuDeviceGetDefaultMemPool)(&standard, 0));
  ASSERT_CU(CU(cuDeviceGetMemPool)(&current, 0));
  EXPECT_EQ(current, standard);
  ASSERT_CU(CU(cuDeviceSetMemPool)(0, pool_));
  CUdeviceptr memory = 0;
  ASSERT_CU(CU(cuMemAllocAsync)(&memory, kSize, stream_));
  EXPECT_EQ(Number(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), kSize);
  ASSERT_CU(CU(cuMemFreeAsync)(memory, stream_));
  ASSERT_CU(CU(cuDeviceSetMemPool)(0, standard));
  EXPECT_TRUE(IsRefusal(CU(cuMemPoolDestroy)(standard))) << "the default pool stays";
}

TEST_F(Pools, OwnDevice_HasAccessAlways) {
  CUmemLocation here{};
  here.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  ASSERT_CU(CU(cuMemPoolGetAccess)(&flags, pool_, &here));
  EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CUmemAccessDesc none{};
  none.location = here;
  EXPECT_TRUE(IsRefusal(CU(cuMemPoolSetAccess)(pool_, &none, 1)));
}

TEST_F(Pools, TooMuch_IsOutOfMemory) {
  CUdeviceptr memory = 0;
  EXPECT_EQ(CU(cuMemAllocFromPoolAsync)(&memory, size_t{1} << 44, pool_, stream_), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(IsRefusal(CU(cuMemAllocFromPoolAsync)(&memory, 0, pool_, stream_)));
}

}  // namespace
}  // namespace weir::conformance
