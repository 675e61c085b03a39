// Virtual memory management: driver API documentation, "Virtual Memory Management", the call that each test
// names.
#include "tests/conformance/vmm_fixture.h"

namespace weir::conformance {
namespace {

// cuMemGetAllocationGranularity: the minimum is what sizes must be a multiple of, the recommended one a
// multiple of it. Alignments are powers of two.
TEST_F(Vmm, Granularity_Recommended_IsAMultipleOfTheMinimum) {
  size_t recommended = 0;
  const CUmemAllocationProp properties = Properties();
  ASSERT_CU(
      CU(cuMemGetAllocationGranularity)(&recommended, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  EXPECT_GT(unit_, 0u);
  EXPECT_EQ(unit_ & (unit_ - 1), 0u);
  EXPECT_EQ(recommended % unit_, 0u);
}

// Weir's frames are multiples of 2 MiB.
TEST_F(Vmm, Granularity_DividesTwoMebibytes) { EXPECT_EQ(2 * kMiB % unit_, 0u); }

// cuMemAddressReserve: an alignment that is a power of two is honoured.
TEST_F(Vmm, Reserve_WithAlignment_IsAligned) {
  const size_t alignment = 64 * kMiB;
  CUdeviceptr address = 0;
  ASSERT_CU(CU(cuMemAddressReserve)(&address, 64 * kMiB, alignment, 0, 0));
  EXPECT_EQ(address % alignment, 0u);
  EXPECT_CU(CU(cuMemAddressFree)(address, 64 * kMiB));
}

// cuMemAddressReserve: reservations are address space, not memory, and do not overlap.
TEST_F(Vmm, Reserve_MoreThanTheDeviceHolds_TakesNoMemory) {
  size_t free_before = 0, total = 0;
  ASSERT_CU(CU(cuMemGetInfo)(&free_before, &total));
  const size_t size = (total / unit_ + 1) * unit_;
  const CUdeviceptr first = Reserve(size), second = Reserve(size);
  EXPECT_TRUE(first + size <= second || second + size <= first);
  EXPECT_EQ(FreeBytes(), free_before);
}

// cuMemCreate takes the memory at once, and the last release gives it back.
TEST_F(Vmm, Create_TakesDeviceMemory_ReleaseGivesItBack) {
  const size_t size = 32 * kMiB, before = FreeBytes();
  const Frame frame = Create(size);
  EXPECT_LE(FreeBytes(), before - size);
  Release(frame);
  EXPECT_EQ(FreeBytes(), before);
}

// cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY; it does not stick.
TEST_F(Vmm, Create_BeyondTheDevice_IsOutOfMemoryAndDoesNotStick) {
  size_t free = 0, total = 0;
  ASSERT_CU(CU(cuMemGetInfo)(&free, &total));
  Frame frame = 0;
  const CUmemAllocationProp properties = Properties();
  EXPECT_EQ(CU(cuMemCreate)(&frame, (total / unit_ + 1) * unit_, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  Create(unit_);
  EXPECT_CU(CU(cuCtxSynchronize)());
}

// cuMemMap, cuMemSetAccess: a frame mapped with access holds what is written.
TEST_F(Vmm, Mapping_WithAccess_HoldsBytes) {
  const CUdeviceptr address = Reserve(unit_);
  MapReadWrite(address, unit_, Create(unit_));
  Write(address, 0x5a, unit_);
  EXPECT_EQ(Count(address, 0x5a, unit_), unit_);
}

// cuMemUnmap: the address becomes a reservation again and can be mapped anew; a frame keeps its bytes.
TEST_F(Vmm, Frame_MovedToAnotherAddress_KeepsItsBytes) {
  const CUdeviceptr here = Reserve(unit_), there = Reserve(unit_);
  const Frame frame = Create(unit_);
  MapReadWrite(here, unit_, frame);
  Write(here, 7, unit_);
  Unmap(here, unit_);
  MapReadWrite(there, unit_, frame);
  EXPECT_EQ(Count(there, 7, unit_), unit_);
  MapReadWrite(here, unit_, Create(unit_));
  Write(here, 8, unit_);
  EXPECT_EQ(Count(there, 7, unit_), unit_);
}

// cuMemRelease: the handle may go while mappings are left; the memory goes with the last of both.
TEST_F(Vmm, Release_WhileMapped_KeepsTheMemoryUntilTheUnmap) {
  const size_t size = 32 * kMiB, before = FreeBytes();
  const CUdeviceptr address = Reserve(size);
  const Frame frame = Create(size);
  MapReadWrite(address, size, frame);
  Write(address, 3, size);
  Release(frame);
  EXPECT_EQ(Count(address, 3, size), size);
  EXPECT_LE(FreeBytes(), before - size);
  Unmap(address, size);
  EXPECT_EQ(FreeBytes(), before);
}

// cuMemRetainAllocationHandle: any address of the mapping, the handle value that was mapped, one release each.
TEST_F(Vmm, RetainHandle_InsideAMapping_GivesTheHandleAgain) {
  const size_t size = 32 * kMiB, before = FreeBytes();
  const CUdeviceptr address = Reserve(size);
  const Frame frame = Create(size);
  Map(address, size, frame);
  Frame again = 0;
  ASSERT_CU(CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(address + size - 1)));
  EXPECT_EQ(again, frame);
  ASSERT_CU(CU(cuMemRelease)(again));
  Unmap(address, size);
  EXPECT_LE(FreeBytes(), before - size);
}

// cuMemRetainAllocationHandle: "If the address requested is not mapped, the function will fail."
TEST_F(Vmm, RetainHandle_WhereNothingIsMapped_Fails) {
  const CUdeviceptr address = Reserve(unit_);
  Frame frame = 0;
  EXPECT_TRUE(IsRefusal(CU(cuMemRetainAllocationHandle)(&frame, reinterpret_cast<void*>(address))));
}

// cuMemUnmap: one call may take down several whole mappings that lie side by side.
TEST_F(Vmm, Unmap_OfNeighbours_TakesAllOfThem) {
  const CUdeviceptr address = Reserve(3 * unit_);
  for (int i = 0; i < 3; ++i) MapReadWrite(address + i * unit_, unit_, Create(unit_));
  Unmap(address, 3 * unit_);
  for (int i = 0; i < 3; ++i) MapReadWrite(address + i * unit_, unit_, Create(unit_));
}

// cuMemSetAccess: one call for several mappings side by side; copies and memsets cross their borders.
TEST_F(Vmm, Neighbours_WithAccessByOneCall_AreOneRange) {
  const CUdeviceptr address = Reserve(3 * unit_);
  for (int i = 0; i < 3; ++i) Map(address + i * unit_, unit_, Create(unit_));
  ASSERT_CU(SetAccess(address, 3 * unit_, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  Write(address, 1, 3 * unit_);
  Write(address + unit_ - 100, 2, 200);
  EXPECT_EQ(Count(address, 2, 3 * unit_), 200u);
  EXPECT_EQ(Count(address + unit_ - 100, 2, 200), 200u);
}

// cuMemGetAllocationPropertiesFromHandle gives back what cuMemCreate was given.
TEST_F(Vmm, Properties_OfAFrame_AreThoseItWasMadeWith) {
  CUmemAllocationProp properties{};
  ASSERT_CU(CU(cuMemGetAllocationPropertiesFromHandle)(&properties, Create(unit_)));
  EXPECT_EQ(properties.type, CU_MEM_ALLOCATION_TYPE_PINNED);
  EXPECT_EQ(properties.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(properties.location.id, 0);
}

// cuPointerGetAttribute, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: "not necessarily the address of the mapped
// region, but the address of the mappable address range"; MAPPING_BASE_ADDR and MAPPING_SIZE: the mapping's.
TEST_F(Vmm, PointerAttributes_TellReservationAndMapping) {
  const CUdeviceptr address = Reserve(4 * unit_);
  MapReadWrite(address + unit_, 2 * unit_, Create(2 * unit_));
  const CUdeviceptr inside = address + 2 * unit_ + 5;
  CUdeviceptr begin = 0;
  size_t size = 0;
  ASSERT_CU(CU(cuPointerGetAttribute)(&begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside));
  ASSERT_CU(CU(cuPointerGetAttribute)(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside));
  EXPECT_EQ(begin, address);
  EXPECT_EQ(size, 4 * unit_);
  ASSERT_CU(CU(cuPointerGetAttribute)(&begin, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, inside));
  ASSERT_CU(CU(cuPointerGetAttribute)(&size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, inside));
  EXPECT_EQ(begin, address + unit_);
  EXPECT_EQ(size, 2 * unit_);
}

// cuPointerGetAttribute, CU_POINTER_ATTRIBUTE_MAPPED: whether the address is in a valid address range that is
// mapped to a backing allocation.
TEST_F(Vmm, PointerAttributes_TellWhetherAnAddressIsMapped) {
  const CUdeviceptr address = Reserve(2 * unit_);
  MapReadWrite(address, unit_, Create(unit_));
  int mapped = -1;
  ASSERT_CU(CU(cuPointerGetAttribute)(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, address));
  EXPECT_NE(mapped, 0);
  const CUresult status = CU(cuPointerGetAttribute)(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, address + unit_);
  EXPECT_TRUE(status == CUDA_ERROR_INVALID_VALUE || (status == CUDA_SUCCESS && mapped == 0)) << status;
}

// What the calls refuse. Each gets four units of reserved addresses with one frame of two units mapped at +0.
struct Misuse {
  const char* name;
  CUresult (*act)(CUdeviceptr reserved, size_t unit, Frame frame);
};

CUmemAllocationProp DeviceMemory(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

CUresult Access(CUdeviceptr address, size_t size, int device, CUmemAccess_flags flags) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = flags;
  return CU(cuMemSetAccess)(address, size, &access, 1);
}

constexpr auto kReadWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

const Misuse kMisuses[] = {
    // cuMemUnmap "cannot unmap a sub-range"
    {"UnmapFirstHalfOfAMapping", [](auto at, auto unit, auto) { return CU(cuMemUnmap)(at, unit); }},
    {"UnmapSecondHalfOfAMapping", [](auto at, auto unit, auto) { return CU(cuMemUnmap)(at + unit, unit); }},
    {"UnmapWhereNothingIs", [](auto at, auto unit, auto) { return CU(cuMemUnmap)(at + 2 * unit, unit); }},
    // cuMemMap "can only create mappings on VA range reservations that are not currently mapped"
    {"MapOverAMapping",
     [](auto at, auto unit, auto frame) { return CU(cuMemMap)(at, 2 * unit, 0, frame, 0); }},
    {"MapOverHalfOfAMapping",
     [](auto at, auto unit, auto frame) { return CU(cuMemMap)(at + unit, 2 * unit, 0, frame, 0); }},
    // cuMemMap: "This range must be an address reservation"
    {"MapPastTheReservation",
     [](auto at, auto unit, auto frame) { return CU(cuMemMap)(at + 3 * unit, 2 * unit, 0, frame, 0); }},
    // cuMemMap: offset "currently must be zero", flags "must be zero"
    {"MapWithOffset",
     [](auto at, auto unit, auto frame) { return CU(cuMemMap)(at + 2 * unit, unit, unit, frame, 0); }},
    {"MapWithFlags",
     [](auto at, auto unit, auto frame) { return CU(cuMemMap)(at + 2 * unit, 2 * unit, 0, frame, 1); }},
    // cuMemMap: ptr and size are multiples of the granularity
    {"MapUnalignedAddress",
     [](auto at, auto unit, auto frame) { return CU(cuMemMap)(at + 2 * unit + 4096, unit, 0, frame, 0); }},
    {"MapNothing",
     [](auto at, auto unit, auto frame) { return CU(cuMemMap)(at + 2 * unit, 0, 0, frame, 0); }},
    {"MapMoreThanTheFrame",
     [](auto at, auto unit, auto) {
       Frame small = 0;
       const CUmemAllocationProp properties = DeviceMemory(0);
       EXPECT_CU(CU(cuMemCreate)(&small, unit, &properties, 0));
       const CUresult status = CU(cuMemMap)(at + 2 * unit, 2 * unit, 0, small, 0);
       EXPECT_CU(CU(cuMemRelease)(small));
       return status;
     }},
    // cuMemSetAccess: "must be a fully mapped address range"
    {"AccessWhereNothingIs",
     [](auto at, auto unit, auto) { return Access(at + 2 * unit, unit, 0, kReadWrite); }},
    {"AccessOverAHole", [](auto at, auto unit, auto) { return Access(at, 4 * unit, 0, kReadWrite); }},
    {"AccessByNoSuchDevice",
     [](auto at, auto unit, auto) { return Access(at, 2 * unit, 1 << 20, kReadWrite); }},
    {"AccessOfNoSuchKind",
     [](auto at, auto unit, auto) { return Access(at, 2 * unit, 0, static_cast<CUmemAccess_flags>(2)); }},
    {"AccessByNobody",
     [](auto at, auto unit, auto) {
       return CU(cuMemSetAccess)(at, 2 * unit, static_cast<const CUmemAccessDesc*>(nullptr), 0);
     }},
    // cuMemAddressFree: size and address must match the reservation
    {"FreePartOfAReservation", [](auto at, auto unit, auto) { return CU(cuMemAddressFree)(at, unit); }},
    // cuMemCreate: size is a multiple of the granularity, flags are zero, the device exists
    {"CreateUnaligned",
     [](auto, auto unit, auto) {
       Frame frame = 0;
       const CUmemAllocationProp properties = DeviceMemory(0);
       return CU(cuMemCreate)(&frame, unit + unit / 2, &properties, 0);
     }},
    {"CreateNothing",
     [](auto, auto, auto) {
       Frame frame = 0;
       const CUmemAllocationProp properties = DeviceMemory(0);
       return CU(cuMemCreate)(&frame, 0, &properties, 0);
     }},
    {"CreateWithFlags",
     [](auto, auto unit, auto) {
       Frame frame = 0;
       const CUmemAllocationProp properties = DeviceMemory(0);
       return CU(cuMemCreate)(&frame, unit, &properties, 1);
     }},
    {"CreateOnNoSuchDevice",
     [](auto, auto unit, auto) {
       Frame frame = 0;
       const CUmemAllocationProp properties = DeviceMemory(1 << 20);
       return CU(cuMemCreate)(&frame, unit, &properties, 0);
     }},
    // cuMemAddressReserve: "the alignment must be a power of two or zero", flags are zero
    {"ReserveWithOddAlignment",
     [](auto, auto unit, auto) {
       CUdeviceptr address = 0;
       return CU(cuMemAddressReserve)(&address, unit, 3 * unit, 0, 0);
     }},
    {"ReserveNothing",
     [](auto, auto, auto) {
       CUdeviceptr address = 0;
       return CU(cuMemAddressReserve)(&address, 0, 0, 0, 0);
     }},
};

void PrintTo(const Misuse& misuse, std::ostream* out) { *out << misuse.name; }

class VmmMisuse : public Vmm, public ::testing::WithParamInterface<Misuse> {};

TEST_P(VmmMisuse, Call_AgainstTheRules_IsRefusedAndChangesNothing) {
  const CUdeviceptr reserved = Reserve(4 * unit_);
  const Frame frame = Create(2 * unit_);
  MapReadWrite(reserved, 2 * unit_, frame);
  Write(reserved, 0x11, 2 * unit_);
  const CUresult status = GetParam().act(reserved, unit_, frame);
  EXPECT_TRUE(IsRefusal(status)) << "gave " << status;
  EXPECT_EQ(Count(reserved, 0x11, 2 * unit_), 2 * unit_);
}

INSTANTIATE_TEST_SUITE_P(Each, VmmMisuse, ::testing::ValuesIn(kMisuses),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weir::conformance
