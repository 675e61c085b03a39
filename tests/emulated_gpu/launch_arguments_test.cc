// Kernels `none`: the pointers among a launch's arguments must lead to memory that kernels may touch (correctness R17).
#include <cstdlib>

#include "tests/emulated_gpu/driver_under_test.h"
#include "tests/emulated_gpu/made_cubin.h"

namespace weir::emulated {
namespace {

constexpr char kPointer[] = "_Z1kPf";              // k(float*)
constexpr char kArray[] = "_Z1aSt5arrayIPcLm3EE";  // a(std::array<char*, 3ul>)
constexpr char kStruct[] = "_Z1s7Closure";         // s(Closure)
constexpr char kLists[] = "_Z1lN2at6native12_GLOBAL__N_118TensorListMetadataILi1EEE";
constexpr char kPlain[] = "triton_poi_fused_add_0";

class LaunchArguments : public EmulatedDevice {
 protected:
  void SetUp() override {
    setenv("WEIR_KERNELS", "none", 1);
    EmulatedDevice::SetUp();
    const std::string image = MadeCubin({{kPointer, {{0, 8}}},
                                         {kArray, {{0, 24}}},
                                         {kStruct, {{0, 24}}},
                                         {kLists, {{0, 3368}}},
                                         {kPlain, {{0, 8}, {8, 4}}}});
    ASSERT_EQ(CU(cuModuleLoadData)(&module_, image.data()), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemAlloc)(&alive_, kSize), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemAlloc)(&freed_, kSize), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemFree)(freed_), CUDA_SUCCESS);
  }

  void Launch(const char* kernel, void** arguments, void** extra = nullptr, unsigned blocks = 1) {
    CUfunction function = nullptr;
    ASSERT_EQ(CU(cuModuleGetFunction)(&function, module_, kernel), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuLaunchKernel)(function, blocks, 1, 1, 1, 1, 1, 0, nullptr, arguments, extra),
              CUDA_SUCCESS);
  }

  void LaunchWith(const char* kernel, CUdeviceptr pointer) {
    int number = 3;
    void* arguments[] = {&pointer, &number};
    Launch(kernel, arguments);
  }

  // One frame, mapped without access.
  CUdeviceptr MappedFrame() {
    CUdeviceptr range = 0;
    EXPECT_EQ(CU(cuMemAddressReserve)(&range, 2 * kFrame, 0, 0, 0), CUDA_SUCCESS);
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemGenericAllocationHandle frame = 0;
    EXPECT_EQ(CU(cuMemCreate)(&frame, kFrame, &properties, 0), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemMap)(range, kFrame, 0, frame, 0), CUDA_SUCCESS);
    return range;
  }
  void GiveAccess(CUdeviceptr range) {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_EQ(CU(cuMemSetAccess)(range, kFrame, &access, 1), CUDA_SUCCESS);
  }

  static constexpr size_t kSize = 4096;
  CUmodule module_ = nullptr;
  CUdeviceptr alive_ = 0, freed_ = 0;
};

TEST_F(LaunchArguments, PointerIntoAnAllocation_IsFine) {
  LaunchWith(kPointer, alive_);
  LaunchWith(kPointer, alive_ + kSize - 1);
  LaunchWith(kPointer, 0);
  LaunchWith(kPlain, alive_);
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(LaunchArguments, PointerToFreedMemory_IsReportedByKernelAndArgument) {
  testing::internal::CaptureStderr();
  LaunchWith(kPointer, freed_ + 8);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(NewReports(), 1u);
  EXPECT_NE(told.find("argument 0, byte 0"), std::string::npos) << told;
  EXPECT_NE(told.find("kernel k(float*)"), std::string::npos) << told;
  LaunchWith(kPlain, freed_);
  EXPECT_EQ(NewReports(), 2u);
}

TEST_F(LaunchArguments, MemberOfAnArrayOfPointers_IsReportedWithItsByte) {
  CUdeviceptr operands[3] = {alive_, alive_ + 512, freed_};
  void* arguments[] = {operands};
  testing::internal::CaptureStderr();
  Launch(kArray, arguments);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(NewReports(), 1u);
  EXPECT_NE(told.find("argument 0, byte 16"), std::string::npos) << told;
}

TEST_F(LaunchArguments, WordOfAnUnknownStruct_MayBeALeftover) {
  CUdeviceptr words[3] = {alive_, freed_, freed_};
  void* arguments[] = {words};
  Launch(kStruct, arguments);
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(LaunchArguments, OnlyTheEntriesOfAListThatABlockUses_Count) {
  MadeLists lists;
  for (uint64_t& address : lists.addresses) address = freed_;
  lists.addresses[0] = lists.addresses[1] = alive_;
  lists.block_to_tensor[1] = 1;
  lists.block_to_tensor[2] = 2;  // of a block that is not launched
  void* arguments[] = {&lists};
  Launch(kLists, arguments, nullptr, 2);
  EXPECT_EQ(NewReports(), 0u);
  Launch(kLists, arguments, nullptr, 3);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(LaunchArguments, EndOfAnAllocation_IsFine) {
  LaunchWith(kPointer, alive_ + kSize);
  EXPECT_EQ(NewReports(), 0u);
  LaunchWith(kPointer, alive_ + kSize + 1);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(LaunchArguments, EndOfAMapping_IsReported) {
  const CUdeviceptr range = MappedFrame();
  GiveAccess(range);
  LaunchWith(kPointer, range + kFrame - 1);
  EXPECT_EQ(NewReports(), 0u);
  LaunchWith(kPointer, range + kFrame);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(LaunchArguments, PointerToAMappingWithoutAccess_IsReported) {
  const CUdeviceptr range = MappedFrame();
  LaunchWith(kPointer, range);
  EXPECT_EQ(NewReports(), 1u);
  GiveAccess(range);
  LaunchWith(kPointer, range);
  EXPECT_EQ(NewReports(), 1u);
  ASSERT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemUnmap)(range, kFrame), CUDA_SUCCESS);
  LaunchWith(kPointer, range);
  EXPECT_EQ(NewReports(), 2u);
}

TEST_F(LaunchArguments, MappingThatGoesUnderAKernel_IsReported) {
  const CUdeviceptr range = MappedFrame();
  GiveAccess(range);
  LaunchWith(kPointer, range);
  ASSERT_EQ(CU(cuMemUnmap)(range, kFrame), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(LaunchArguments, ArgumentsInOneBuffer_AreChecked) {
  struct {
    CUdeviceptr pointer;
    int number;
  } buffer{freed_, 1};
  size_t size = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  Launch(kPlain, nullptr, extra);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(LaunchArguments, KernelThatIsNotListed_IsToldOnceAndCounted) {
  testing::internal::CaptureStderr();
  LaunchWith("unlisted", freed_);
  LaunchWith("unlisted", freed_);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(NewReports(), 0u);
  const size_t first = told.find("arguments of kernel unlisted are not checked");
  ASSERT_NE(first, std::string::npos) << told;
  EXPECT_EQ(told.find("not checked", first + 40), std::string::npos) << told;
  EXPECT_EQ(ReadCounters().unchecked_launches, 2u);
}

}  // namespace
}  // namespace weir::emulated
