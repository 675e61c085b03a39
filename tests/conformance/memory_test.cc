// Allocations, pinned memory and what pointers tell: driver API documentation, "Memory Management" and
// "Unified Addressing".
#include "tests/conformance/order_fixture.h"

namespace weir::conformance {
namespace {

class Memory : public Order {};

template <typename Value>
Value Told(CUpointer_attribute attribute, CUdeviceptr address) {
  Value value{};
  EXPECT_CU(CU(cuPointerGetAttribute)(&value, attribute, address));
  return value;
}

// CU_POINTER_ATTRIBUTE_MEMORY_TYPE, _DEVICE_ORDINAL, _RANGE_START_ADDR, _RANGE_SIZE of cuMemAlloc.
TEST_F(Memory, DevicePointer_TellsItsAllocation) {
  const CUdeviceptr memory = NewMemory(8192);
  EXPECT_EQ(Told<CUmemorytype>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 8191), CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(Told<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory), 0);
  EXPECT_EQ(Told<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 5000), memory);
  EXPECT_EQ(Told<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory + 5000), 8192u);
  EXPECT_EQ(Told<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, memory), 0u);
}

// cuMemGetAddressRange: base and size of the allocation that holds the address.
TEST_F(Memory, AddressRange_IsThatOfTheAllocation) {
  const CUdeviceptr memory = NewMemory(8192);
  CUdeviceptr begin = 0;
  size_t size = 0;
  ASSERT_CU(CU(cuMemGetAddressRange)(&begin, &size, memory + 77));
  EXPECT_EQ(begin, memory);
  EXPECT_EQ(size, 8192u);
}

// "Unified Addressing": pinned memory has the same address for host and device.
TEST_F(Memory, PinnedPointer_IsTheSameOnTheDevice) {
  uint8_t* pinned = NewPinned(8192);
  CUdeviceptr device = 0;
  ASSERT_CU(CU(cuMemHostGetDevicePointer)(&device, pinned, 0));
  EXPECT_EQ(device, reinterpret_cast<CUdeviceptr>(pinned));
  EXPECT_EQ(Told<CUmemorytype>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 100), CU_MEMORYTYPE_HOST);
  EXPECT_EQ(Told<void*>(CU_POINTER_ATTRIBUTE_HOST_POINTER, device), static_cast<void*>(pinned));
}

// cuPointerGetAttribute: INVALID_VALUE for memory that CUDA does not know.
TEST_F(Memory, OrdinaryPointer_IsInvalid) {
  std::vector<char> ordinary(4096);
  unsigned type = 0;
  EXPECT_EQ(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      reinterpret_cast<CUdeviceptr>(ordinary.data())),
            CUDA_ERROR_INVALID_VALUE);
}

// cuMemGetInfo: free falls with an allocation and rises with the free.
TEST_F(Memory, Info_FollowsAllocations) {
  constexpr size_t kSize = 64 * kMiB;
  size_t before = 0, during = 0, after = 0, total = 0;
  ASSERT_CU(CU(cuMemGetInfo)(&before, &total));
  CUdeviceptr memory = 0;
  ASSERT_CU(CU(cuMemAlloc)(&memory, kSize));
  ASSERT_CU(CU(cuMemGetInfo)(&during, &total));
  ASSERT_CU(CU(cuMemFree)(memory));
  ASSERT_CU(CU(cuMemGetInfo)(&after, &total));
  EXPECT_LE(during, before - kSize);
  EXPECT_EQ(after, before);
  EXPECT_LE(before, total);
}

// Allocations do not overlap.
TEST_F(Memory, Allocations_AreApart) {
  std::vector<CUdeviceptr> all;
  for (unsigned char i = 0; i < 32; ++i) {
    all.push_back(NewMemory(3000));
    Write(all.back(), i, 3000);
  }
  for (unsigned char i = 0; i < 32; ++i) EXPECT_EQ(Count(all[i], i, 3000), 3000u);
}

}  // namespace
}  // namespace weir::conformance
