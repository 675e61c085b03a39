// VmmAliases of one frame and access rights: driver API documentation, "Virtual Memory Management"; programming
// guide, "Virtual Memory Management", section on virtual aliasing.
#include "tests/conformance/vmm_fixture.h"

namespace weir::conformance {
namespace {

class VmmAliases : public Vmm {
 protected:
  void SetUp() override {
    Vmm::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    here_ = Reserve(unit_);
    there_ = Reserve(unit_);
    frame_ = Create(unit_);
    MapReadWrite(here_, unit_, frame_);
    MapReadWrite(there_, unit_, frame_);
  }

  CUdeviceptr here_ = 0, there_ = 0;
  Frame frame_ = 0;
};

// Writes through one alias are seen through the other once the writing operation has completed.
TEST_F(VmmAliases, Bytes_WrittenThroughOne_AreReadThroughTheOther) {
  Write(here_, 0x21, unit_);
  EXPECT_EQ(Count(there_, 0x21, unit_), unit_);
  Write(there_ + 100, 0x22, 50);
  EXPECT_EQ(Count(here_, 0x22, unit_), 50u);
  EXPECT_EQ(Count(here_ + 100, 0x22, 50), 50u);
}

// The same in stream order, without the host in between: operations of one stream complete one after another.
TEST_F(VmmAliases, Bytes_InStreamOrder_AreSeenThroughTheOther) {
  CUstream stream = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr copies = Reserve(8 * unit_);
  MapReadWrite(copies, 8 * unit_, Create(8 * unit_));
  for (int i = 0; i < 8; ++i) {
    const CUdeviceptr written = i % 2 == 0 ? here_ : there_, read = i % 2 == 0 ? there_ : here_;
    ASSERT_CU(CU(cuMemsetD8Async)(written, static_cast<unsigned char>(0x30 + i), unit_, stream));
    ASSERT_CU(CU(cuMemcpyDtoDAsync)(copies + i * unit_, read, unit_, stream));
  }
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Count(copies + i * unit_, 0x30 + i, unit_), unit_) << i;
  EXPECT_CU(CU(cuStreamDestroy)(stream));
}

// cuMemUnmap of one alias leaves the other; the memory stays until the last mapping is gone.
TEST_F(VmmAliases, Unmap_OfOne_LeavesTheOther) {
  Write(here_, 0x44, unit_);
  Unmap(here_, unit_);
  Release(frame_);
  EXPECT_EQ(Count(there_, 0x44, unit_), unit_);
  Write(there_, 0x45, unit_);
  EXPECT_EQ(Count(there_, 0x45, unit_), unit_);
}

// Two aliases cost the memory of one frame.
TEST_F(VmmAliases, Mapping_OfAFrameAgain_TakesNoMemory) {
  const size_t before = FreeBytes();
  const CUdeviceptr third = Reserve(unit_);
  MapReadWrite(third, unit_, frame_);
  EXPECT_EQ(FreeBytes(), before);
}

// A frame mapped twice inside one reservation is seen at both places of one copy.
TEST_F(VmmAliases, SideBySide_OneCopyReadsTheFrameTwice) {
  const CUdeviceptr pair = Reserve(2 * unit_);
  Map(pair, unit_, frame_);
  Map(pair + unit_, unit_, frame_);
  ASSERT_CU(SetAccess(pair, 2 * unit_, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  Write(here_, 0x51, unit_);
  EXPECT_EQ(Count(pair, 0x51, 2 * unit_), 2 * unit_);
}

class VmmAccess : public Vmm {
 protected:
  static unsigned long long AccessAt(CUdeviceptr address) {
    CUmemLocation location{};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    unsigned long long flags = ~0ull;
    EXPECT_CU(CU(cuMemGetAccess)(&flags, &location, address));
    return flags;
  }

  // Whether a copy of `size` bytes works, the error of a later synchronisation included.
  static CUresult Touch(CUdeviceptr address, size_t size) {
    std::vector<uint8_t> bytes(size);
    const CUresult status = CU(cuMemcpyDtoH)(bytes.data(), address, size);
    return status != CUDA_SUCCESS ? status : CU(cuCtxSynchronize)();
  }
};

// cuMemMap "does not make the address accessible"; cuMemGetAccess tells what cuMemSetAccess gave.
TEST_F(VmmAccess, Mapping_StartsWithoutAccess_AndHasWhatWasSet) {
  const CUdeviceptr address = Reserve(unit_);
  Map(address, unit_, Create(unit_));
  EXPECT_EQ(AccessAt(address), static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_NONE));
  ASSERT_CU(SetAccess(address, unit_, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_EQ(AccessAt(address + unit_ - 1),
            static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

// cuMemUnmap: "Any new mapping to this virtual address will need to have access granted".
TEST_F(VmmAccess, Mapping_MadeAgain_StartsWithoutAccess) {
  const CUdeviceptr address = Reserve(unit_);
  const Frame frame = Create(unit_);
  MapReadWrite(address, unit_, frame);
  Unmap(address, unit_);
  Map(address, unit_, frame);
  EXPECT_EQ(AccessAt(address), static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_NONE));
}

// Access belongs to the mapping, not to the frame.
TEST_F(VmmAccess, TwoMappingsOfOneFrame_HaveTheirOwn) {
  const CUdeviceptr open = Reserve(unit_), closed = Reserve(unit_);
  const Frame frame = Create(unit_);
  MapReadWrite(open, unit_, frame);
  Map(closed, unit_, frame);
  EXPECT_EQ(AccessAt(closed), static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_NONE));
  Write(open, 9, unit_);
  ASSERT_CU(SetAccess(closed, unit_, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_EQ(Count(closed, 9, unit_), unit_);
}

// CU_MEM_ACCESS_FLAGS_PROT_READ: "Make the address range read accessible". Where a driver takes it, reads work.
TEST_F(VmmAccess, ReadOnlyMapping_CanBeRead) {
  const CUdeviceptr written = Reserve(unit_), read = Reserve(unit_);
  const Frame frame = Create(unit_);
  MapReadWrite(written, unit_, frame);
  Map(read, unit_, frame);
  const CUresult status = SetAccess(read, unit_, CU_MEM_ACCESS_FLAGS_PROT_READ);
  if (status == CUDA_ERROR_NOT_SUPPORTED || status == CUDA_ERROR_INVALID_VALUE) {
    GTEST_SKIP() << "this driver gives no read-only access to device memory: error " << status;
  }
  ASSERT_CU(status);
  Write(written, 0x61, unit_);
  EXPECT_EQ(Count(read, 0x61, unit_), unit_);
}

TEST_F(VmmAccess, Query_WhereNothingIsMapped_Fails) {
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  unsigned long long flags = 0;
  EXPECT_TRUE(IsRefusal(CU(cuMemGetAccess)(&flags, &location, Reserve(unit_))));
}

// Touching what is not mapped, or has no access, is an error: at the call or at the next synchronisation.
TEST_F(VmmAccess, Copy_FromUnmappedMemory_IsAnError) {
  ExpectInChild([this] {
    const CUdeviceptr address = Reserve(unit_);
    MapReadWrite(address, unit_, Create(unit_));
    EXPECT_CU(Touch(address, 4096));
    Unmap(address, unit_);
    EXPECT_NE(Touch(address, 4096), CUDA_SUCCESS);
  });
}

TEST_F(VmmAccess, Copy_FromAMappingWithoutAccess_IsAnError) {
  ExpectInChild([this] {
    const CUdeviceptr address = Reserve(unit_);
    Map(address, unit_, Create(unit_));
    EXPECT_NE(Touch(address, 4096), CUDA_SUCCESS);
  });
}

TEST_F(VmmAccess, Copy_ThatRunsIntoAHole_IsAnError) {
  ExpectInChild([this] {
    const CUdeviceptr address = Reserve(2 * unit_);
    MapReadWrite(address, unit_, Create(unit_));
    EXPECT_NE(Touch(address + unit_ - 2048, 4096), CUDA_SUCCESS);
  });
}

}  // namespace
}  // namespace weir::conformance
