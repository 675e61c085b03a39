// Rules of virtual memory management, from the driver API documentation of each call.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/emulated_gpu/driver_under_test.h"

namespace weir::emulated {
namespace {

class Vmm : public EmulatedDevice {
 protected:
  static CUmemAllocationProp Properties() {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    return properties;
  }

  static CUdeviceptr Reserve(size_t size) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CU(cuMemAddressReserve)(&address, size, 0, 0, 0), CUDA_SUCCESS);
    return address;
  }

  static CUmemGenericAllocationHandle Create(size_t size) {
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp properties = Properties();
    EXPECT_EQ(CU(cuMemCreate)(&handle, size, &properties, 0), CUDA_SUCCESS);
    return handle;
  }

  static CUresult SetReadWrite(CUdeviceptr address, size_t size) {
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CU(cuMemSetAccess)(address, size, &access, 1);
  }

  static void MapFrame(CUdeviceptr address, CUmemGenericAllocationHandle handle, size_t size) {
    ASSERT_EQ(CU(cuMemMap)(address, size, 0, handle, 0), CUDA_SUCCESS);
    ASSERT_EQ(SetReadWrite(address, size), CUDA_SUCCESS);
  }

  static char* Bytes(CUdeviceptr address) { return reinterpret_cast<char*>(address); }
};

TEST_F(Vmm, Granularity_IsTwoMebibytes) {
  size_t granularity = 0;
  const CUmemAllocationProp properties = Properties();
  ASSERT_EQ(CU(cuMemGetAllocationGranularity)(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            CUDA_SUCCESS);
  EXPECT_EQ(granularity, kFrame);
}

TEST_F(Vmm, Frame_MappedAtTwoAddresses_IsOneMemory) {
  const CUdeviceptr here = Reserve(kFrame), there = Reserve(kFrame);
  const auto frame = Create(kFrame);
  MapFrame(here, frame, kFrame);
  MapFrame(there, frame, kFrame);
  Bytes(here)[12345] = 'w';
  EXPECT_EQ(Bytes(there)[12345], 'w');
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(Vmm, Frame_MovedToAnotherAddress_KeepsItsBytes) {
  const CUdeviceptr here = Reserve(kFrame), there = Reserve(kFrame);
  const auto frame = Create(kFrame);
  MapFrame(here, frame, kFrame);
  std::memset(Bytes(here), 7, kFrame);
  ASSERT_EQ(CU(cuMemUnmap)(here, kFrame), CUDA_SUCCESS);
  MapFrame(there, frame, kFrame);
  EXPECT_EQ(std::count(Bytes(there), Bytes(there) + kFrame, 7), static_cast<long>(kFrame));
}

TEST_F(Vmm, Create_BeyondTheDevice_IsOutOfMemory) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp properties = Properties();
  EXPECT_EQ(CU(cuMemCreate)(&handle, 258 * kMiB, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CU(cuMemCreate)(&handle, 256 * kMiB, &properties, 0), CUDA_SUCCESS);
  EXPECT_EQ(ReadCounters().used_bytes, 256 * kMiB);
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(Vmm, Release_WhileMapped_KeepsTheBytesUntilTheUnmap) {
  const CUdeviceptr address = Reserve(kFrame);
  const auto frame = Create(kFrame);
  MapFrame(address, frame, kFrame);
  ASSERT_EQ(CU(cuMemRelease)(frame), CUDA_SUCCESS);
  Bytes(address)[0] = 1;
  EXPECT_EQ(ReadCounters().used_bytes, kFrame);
  ASSERT_EQ(CU(cuMemUnmap)(address, kFrame), CUDA_SUCCESS);
  EXPECT_EQ(ReadCounters().used_bytes, 0u);
}

TEST_F(Vmm, Frame_CreatedInFreedMemory_HoldsZeros) {
  const CUdeviceptr address = Reserve(kFrame);
  auto frame = Create(kFrame);
  MapFrame(address, frame, kFrame);
  std::memset(Bytes(address), 9, kFrame);
  ASSERT_EQ(CU(cuMemUnmap)(address, kFrame), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemRelease)(frame), CUDA_SUCCESS);
  frame = Create(kFrame);
  MapFrame(address, frame, kFrame);
  EXPECT_EQ(std::count(Bytes(address), Bytes(address) + kFrame, 0), static_cast<long>(kFrame));
}

struct Misuse {
  const char* name;
  CUresult (*act)(CUdeviceptr reserved,
                  CUmemGenericAllocationHandle frame);  // 4 frames reserved, 2 mapped at +0
};

void PrintTo(const Misuse& misuse, std::ostream* out) { *out << misuse.name; }

class VmmMisuse : public Vmm, public ::testing::WithParamInterface<Misuse> {};

TEST_P(VmmMisuse, Call_AgainstTheRules_IsInvalidAndReported) {
  const CUdeviceptr reserved = Reserve(4 * kFrame);
  const auto frame = Create(2 * kFrame);
  MapFrame(reserved, frame, 2 * kFrame);
  EXPECT_EQ(GetParam().act(reserved, frame), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(NewReports(), 1u);
  Bytes(reserved)[0] = 1;  // what was mapped still is
}

const Misuse kMisuses[] = {
    {"PartOfAMappingUnmapped", [](CUdeviceptr at, auto) { return CU(cuMemUnmap)(at, kFrame); }},
    {"HoleUnmapped", [](CUdeviceptr at, auto) { return CU(cuMemUnmap)(at + 2 * kFrame, kFrame); }},
    {"MappedTwice",
     [](CUdeviceptr at, auto frame) { return CU(cuMemMap)(at + kFrame, kFrame, 0, frame, 0); }},
    {"MappedPastTheReservation",
     [](CUdeviceptr at, auto frame) { return CU(cuMemMap)(at + 3 * kFrame, 2 * kFrame, 0, frame, 0); }},
    {"MappedLargerThanTheFrame",
     [](CUdeviceptr at, auto) {
       CUmemGenericAllocationHandle small = 0;
       CUmemAllocationProp properties{};
       properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
       EXPECT_EQ(CU(cuMemCreate)(&small, kFrame, &properties, 0), CUDA_SUCCESS);
       return CU(cuMemMap)(at + 2 * kFrame, 2 * kFrame, 0, small, 0);
     }},
    {"MappedWithOffset",
     [](CUdeviceptr at, auto frame) { return CU(cuMemMap)(at + 2 * kFrame, kFrame, kFrame, frame, 0); }},
    {"MappedUnaligned",
     [](CUdeviceptr at, auto frame) { return CU(cuMemMap)(at + 2 * kFrame + 4096, kFrame, 0, frame, 0); }},
    {"AccessOverAHole",
     [](CUdeviceptr at, auto) {
       CUmemAccessDesc access{};
       access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
       access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
       return CU(cuMemSetAccess)(at, 4 * kFrame, &access, 1);
     }},
    {"ReservationFreedWhileMapped",
     [](CUdeviceptr at, auto) { return CU(cuMemAddressFree)(at, 4 * kFrame); }},
    {"ReservationFreedInPart", [](CUdeviceptr at, auto) { return CU(cuMemAddressFree)(at, kFrame); }},
    {"ReleasedTwice",
     [](CUdeviceptr, auto frame) {
       EXPECT_EQ(CU(cuMemRelease)(frame), CUDA_SUCCESS);
       return CU(cuMemRelease)(frame);
     }},
};
INSTANTIATE_TEST_SUITE_P(Each, VmmMisuse, ::testing::ValuesIn(kMisuses),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(Vmm, Export_IsRefusedByName) {
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp properties = Properties();
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  ASSERT_EQ(CU(cuMemCreate)(&handle, kFrame, &properties, 0), CUDA_SUCCESS);
  int descriptor = -1;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(
      CU(cuMemExportToShareableHandle)(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("cuMemExportToShareableHandle"), std::string::npos);
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  EXPECT_EQ(CU(cuMemCreate)(&handle, kFrame, &properties, 0), CUDA_ERROR_NOT_SUPPORTED);
}

using VmmDeathTest = Vmm;

TEST_F(VmmDeathTest, Touch_OfUnmappedMemory_DiesWithAReport) {
  const CUdeviceptr reserved = Reserve(kFrame);
  EXPECT_DEATH(Bytes(reserved)[5] = 1, "report: touch of device memory that is reserved but not mapped");
}

TEST_F(VmmDeathTest, Touch_BeforeSetAccess_DiesWithAReport) {
  const CUdeviceptr reserved = Reserve(kFrame);
  ASSERT_EQ(CU(cuMemMap)(reserved, kFrame, 0, Create(kFrame), 0), CUDA_SUCCESS);
  EXPECT_DEATH(Bytes(reserved)[5] = 1, "report: touch of device memory that is mapped without access");
}

TEST_F(Vmm, FramesMappedInOrder_NeedOneKernelMapping) {
  constexpr int kCount = 64;
  const CUdeviceptr reserved = Reserve(kCount * kFrame);
  std::vector<CUmemGenericAllocationHandle> frames(kCount);
  for (auto& frame : frames) frame = Create(kFrame);
  for (int i = 0; i < kCount; ++i) MapFrame(reserved + i * kFrame, frames[i], kFrame);
  int lines = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    lines += line.find("weir-emulated-vram") != std::string::npos;
  EXPECT_EQ(lines, 1);
}

}  // namespace
}  // namespace weir::emulated
