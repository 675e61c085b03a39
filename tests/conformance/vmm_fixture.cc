#include "tests/conformance/vmm_fixture.h"

#include <algorithm>

namespace weir::conformance {

void Vmm::SetUp() {
  Device::SetUp();
  if (HasFatalFailure()) return;
  if (Attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0) {
    GTEST_SKIP() << "the device has no virtual memory management (attribute 102 is 0)";
  }
  const CUmemAllocationProp properties = Properties();
  ASSERT_CU(CU(cuMemGetAllocationGranularity)(&unit_, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

void Vmm::TearDown() {
  if (unit_ == 0) return;
  EXPECT_CU(CU(cuCtxSynchronize)());
  for (const auto& [address, size] : mappings_) EXPECT_CU(CU(cuMemUnmap)(address, size));
  for (const Frame frame : frames_) EXPECT_CU(CU(cuMemRelease)(frame));
  for (const auto& [address, size] : reservations_) EXPECT_CU(CU(cuMemAddressFree)(address, size));
}

CUmemAllocationProp Vmm::Properties() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return properties;
}

CUresult Vmm::SetAccess(CUdeviceptr address, size_t size, CUmemAccess_flags flags) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = flags;
  return CU(cuMemSetAccess)(address, size, &access, 1);
}

CUdeviceptr Vmm::Reserve(size_t size) {
  CUdeviceptr address = 0;
  EXPECT_CU(CU(cuMemAddressReserve)(&address, size, 0, 0, 0));
  reservations_[address] = size;
  return address;
}

Frame Vmm::Create(size_t size) {
  Frame frame = 0;
  const CUmemAllocationProp properties = Properties();
  EXPECT_CU(CU(cuMemCreate)(&frame, size, &properties, 0));
  frames_.push_back(frame);
  return frame;
}

void Vmm::Map(CUdeviceptr address, size_t size, Frame frame) {
  ASSERT_CU(CU(cuMemMap)(address, size, 0, frame, 0));
  mappings_[address] = size;
}

void Vmm::MapReadWrite(CUdeviceptr address, size_t size, Frame frame) {
  Map(address, size, frame);
  ASSERT_CU(SetAccess(address, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

void Vmm::Unmap(CUdeviceptr address, size_t size) {
  ASSERT_CU(CU(cuMemUnmap)(address, size));
  mappings_.erase(mappings_.lower_bound(address), mappings_.lower_bound(address + size));
}

void Vmm::Release(Frame frame) {
  ASSERT_CU(CU(cuMemRelease)(frame));
  frames_.erase(std::find(frames_.begin(), frames_.end(), frame));
}

size_t Vmm::FreeBytes() {
  size_t free = 0, total = 0;
  EXPECT_CU(CU(cuMemGetInfo)(&free, &total));
  return free;
}

}  // namespace weir::conformance
