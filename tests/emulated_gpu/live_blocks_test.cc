// Memory of an allocator that can be asked: what is mapped and in no live block is reported (correctness R17).
#include <cstdlib>

#include "pytorch_plugin/core_abi.h"
#include "tests/emulated_gpu/driver_under_test.h"
#include "tests/emulated_gpu/made_cubin.h"

namespace weir::emulated {
namespace {

constexpr char kPointer[] = "_Z1kPf";       // k(float*)
constexpr char kStruct[] = "_Z1s7Closure";  // s(Closure)
constexpr char kLists[] = "_Z1lN2at6native12_GLOBAL__N_118TensorListMetadataILi1EEE";
constexpr char kTriton[] = "triton_poi_fused_add_0";

// A frame with one block at its begin; what comes after it is free.
class LiveBlocks : public EmulatedDevice {
 protected:
  void SetUp() override {
    setenv("WEIR_KERNELS", "none", 1);
    EmulatedDevice::SetUp();
    void* allocator = dlopen(WEIR_FAKE_ALLOCATOR_PATH, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(allocator, nullptr) << dlerror();
    const std::string image = MadeCubin({{kPointer, {{0, 8}}},
                                         {kStruct, {{0, 24}}},
                                         {kLists, {{0, 3368}}},
                                         {kTriton, {{0, 8}, {8, 8}, {16, 4}}}});
    ASSERT_EQ(CU(cuModuleLoadData)(&module_, image.data()), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemAddressReserve)(&block, 2 * kFrame, 0, 0, 0), CUDA_SUCCESS);
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemGenericAllocationHandle frame = 0;
    ASSERT_EQ(CU(cuMemCreate)(&frame, kFrame, &properties, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemMap)(block, kFrame, 0, frame, 0), CUDA_SUCCESS);
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ASSERT_EQ(CU(cuMemSetAccess)(block, kFrame, &access, 1), CUDA_SUCCESS);
    block_size = kSize;
    auto* answer = static_cast<decltype(&weir_life_of)*>(dlsym(allocator, "fake_life_of"));
    ASSERT_NE(answer, nullptr);
    *answer = &LifeOf;
  }

  static int32_t LifeOf(const void* address, uint64_t bytes) {
    const auto at = reinterpret_cast<CUdeviceptr>(address);
    if (at < block || at >= block + 2 * kFrame) return WEIR_NOT_MINE;
    if (at < block + block_size && at + bytes <= block + block_size) return WEIR_ALIVE;
    return bytes == 0 && block_size != 0 && at == block + block_size ? WEIR_END : WEIR_DEAD;
  }
  static void Free() { block_size = 0; }

  void Launch(const char* kernel, void** arguments, unsigned blocks = 1) {
    CUfunction function = nullptr;
    ASSERT_EQ(CU(cuModuleGetFunction)(&function, module_, kernel), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuLaunchKernel)(function, blocks, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr),
              CUDA_SUCCESS);
  }
  void LaunchWith(CUdeviceptr pointer) {
    void* arguments[] = {&pointer};
    Launch(kPointer, arguments);
  }
  void LaunchWith(CUdeviceptr first, CUdeviceptr second) {
    int number = 3;
    void* arguments[] = {&first, &second, &number};
    Launch(kTriton, arguments);
  }

  static constexpr size_t kSize = 4096;
  static inline CUdeviceptr block = 0;
  static inline size_t block_size = 0;  // 0: freed
  CUmodule module_ = nullptr;
};

TEST_F(LiveBlocks, PointerIntoALiveBlock_IsFine) {
  LaunchWith(block);
  LaunchWith(block + kSize - 1);
  EXPECT_EQ(NewReports(), 0u);
  LaunchWith(block + kSize + 8);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(LiveBlocks, EndOfABlock_IsFineBesideAPointerIntoIt) {
  LaunchWith(block + 8, block + kSize);
  EXPECT_EQ(NewReports(), 0u);
  LaunchWith(block + kSize, block + kSize);
  EXPECT_EQ(NewReports(), 2u);
}

TEST_F(LiveBlocks, EndOfABlockWhereItsMappingEnds_IsFineBesideAPointerIntoIt) {
  block_size = kFrame;
  LaunchWith(block, block + kFrame);
  EXPECT_EQ(NewReports(), 0u);
  LaunchWith(block + kFrame);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(LiveBlocks, PointerIntoAFreedBlock_IsReportedByKernelAndArgument) {
  Free();
  testing::internal::CaptureStderr();
  LaunchWith(block + 16);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(NewReports(), 1u);
  EXPECT_NE(told.find("in no live block"), std::string::npos) << told;
  EXPECT_NE(told.find("argument 0, byte 0"), std::string::npos) << told;
  EXPECT_NE(told.find("kernel k(float*)"), std::string::npos) << told;
}

TEST_F(LiveBlocks, BlockFreedAfterTheLaunch_IsFine) {
  LaunchWith(block);
  Free();
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(LiveBlocks, KernelWithoutTypes_IsCheckedByItsParameterSizes) {
  testing::internal::CaptureStderr();
  LaunchWith(block, block + 2 * kSize);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(NewReports(), 1u);
  EXPECT_NE(told.find("argument 1, byte 0"), std::string::npos) << told;
}

TEST_F(LiveBlocks, WordOfAnUnknownStruct_MayBeALeftover) {
  CUdeviceptr words[3] = {block, block + 2 * kSize, block + 2 * kSize};
  void* arguments[] = {words};
  Launch(kStruct, arguments);
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(LiveBlocks, OnlyTheEntriesOfAListThatABlockUses_Count) {
  MadeLists lists;
  for (uint64_t& address : lists.addresses) address = block + 2 * kSize;
  lists.addresses[0] = block;
  lists.block_to_tensor[1] = 1;
  void* arguments[] = {&lists};
  Launch(kLists, arguments, 1);
  EXPECT_EQ(NewReports(), 0u);
  Launch(kLists, arguments, 2);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(LiveBlocks, CopiesAndMemsetsOfMoreThanOneBlock_AreReported) {
  char bytes[2 * kSize] = {};
  EXPECT_EQ(CU(cuMemcpyHtoD)(block, bytes, kSize), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyDtoH)(bytes, block + 8, kSize - 8), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemsetD8)(block, 1, kSize), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 0u);
  EXPECT_EQ(CU(cuMemcpyHtoD)(block, bytes, kSize + 1), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 1u);
  Free();
  EXPECT_EQ(CU(cuMemcpyDtoH)(bytes, block, 1), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemsetD8)(block, 1, kSize), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 3u);
}

TEST_F(LiveBlocks, MemoryOfNoSuchAllocator_IsNotAsked) {
  CUdeviceptr other = 0;
  ASSERT_EQ(CU(cuMemAlloc)(&other, kSize), CUDA_SUCCESS);
  Free();
  LaunchWith(other);
  EXPECT_EQ(CU(cuMemsetD8)(other, 1, kSize), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 0u);
}

}  // namespace
}  // namespace weir::emulated
