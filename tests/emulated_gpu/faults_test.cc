// Planned failures: what a plan may say, and that each kind of rule makes exactly the calls fail that it names.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/emulated_gpu/driver_under_test.h"

namespace weir::emulated {
namespace {

#define CUDART(name) (::weir::emulated::Named<decltype(::name)>(#name))

// A plan in a file of the test's own. Each test is a process.
std::string PlanFile(const std::string& text) {
  const std::string path = testing::TempDir() + "faults_" + std::to_string(getpid()) + ".txt";
  std::ofstream(path) << text;
  return path;
}

std::string MistakeIn(const std::string& spec) {
  char text[1024] = "";
  const int wrong =
      Named<int(const char*, char*, size_t)>("weir_emulated_check_faults")(spec.c_str(), text, sizeof text);
  EXPECT_EQ(wrong, *text == '\0' ? 0 : 1);
  return text;
}

TEST(FaultPlan, GoodPlans_AreAccepted) {
  for (const char* plan : {"seed:1", "seed:18446744073709551615,0.5", "seed:0,0", "seed:3,1"})
    EXPECT_EQ(MistakeIn(plan), "");
  EXPECT_EQ(MistakeIn(PlanFile("# nothing\n\n")), "");
  EXPECT_EQ(MistakeIn(PlanFile("cuMemCreate 3 OUT_OF_MEMORY\n"
                               "  cuMemCreate 3 OUT_OF_MEMORY once  # comment\n"
                               "cuMemAlloc_v2 1 UNKNOWN forever\n"
                               "cuMemSetAccess 1 NOT_READY each after cuMemUnmap\n"
                               "cudaMalloc 2 OUT_OF_MEMORY after cudaFree\n"
                               "memory_info 0 2GiB\n"
                               "capacity 64MiB\n"
                               "teardown\n")),
            "");
}

TEST(FaultPlan, MalformedPlans_AreRefusedWithFileLineAndWhatWasExpected) {
  const struct {
    const char *line, *expected;
  } cases[] = {
      {"cuMemKreate 3 OUT_OF_MEMORY", "an entry point"},
      {"malloc 3 OUT_OF_MEMORY", "an entry point"},
      {"cuMemCreate", "a number from 1 up"},
      {"cuMemCreate 0 OUT_OF_MEMORY", "a number from 1 up"},
      {"cuMemCreate -1 OUT_OF_MEMORY", "a number from 1 up"},
      {"cuMemCreate 1", "an error such as OUT_OF_MEMORY"},
      {"cuMemCreate 1 NO_MEMORY", "an error such as OUT_OF_MEMORY"},
      {"cuMemCreate 1 OUT_OF_MEMORY twice", "once or forever"},
      {"cuMemCreate 1 OUT_OF_MEMORY each", "once or forever"},
      {"cuMemCreate 1 OUT_OF_MEMORY forever after cuMemUnmap", "once or each"},
      {"cuMemCreate 1 OUT_OF_MEMORY after", "the name of one entry point"},
      {"cuMemCreate 1 OUT_OF_MEMORY after nothing", "the name of one entry point"},
      {"cuMemCreate 1 OUT_OF_MEMORY once more", "once, forever or `after`"},
      {"memory_info 2GiB", "two sizes"},
      {"memory_info 1GiB much", "two sizes"},
      {"capacity", "one size"},
      {"capacity 0", "one size"},
      {"teardown now", "nothing behind teardown"},
  };
  for (const auto& one : cases) {
    const std::string file = PlanFile("teardown\n\n" + std::string(one.line) + "\n");
    const std::string mistake = MistakeIn(file);
    EXPECT_EQ(mistake.rfind(file + ":3: expected ", 0), 0u) << one.line << ": " << mistake;
    EXPECT_NE(mistake.find(one.expected), std::string::npos) << one.line << ": " << mistake;
  }
  for (const char* spec :
       {"seed:", "seed:x", "seed:1,", "seed:1,2", "seed:1,-1", "seed:1,0.5x", "/nowhere/plan.txt"}) {
    EXPECT_NE(MistakeIn(spec).find("expected seed:NUMBER"), std::string::npos) << spec;
  }
}

class Faults : public EmulatedDevice {
 protected:
  void SetUp() override {}  // the plan comes first
  void Plan(const std::string& text) {
    setenv("WEIR_EMULATED_FAULTS", text.rfind("seed:", 0) == 0 ? text.c_str() : PlanFile(text).c_str(), 1);
    EmulatedDevice::SetUp();
  }
  static CUresult Allocate() {
    CUdeviceptr address = 0;
    return CU(cuMemAlloc)(&address, 512);
  }
  static cudaError_t AllocateInRuntime() {
    void* address = nullptr;
    return CUDART(cudaMalloc)(&address, 512);
  }
};

TEST_F(Faults, Once_OnlyThatCallFails) {
  Plan("cuMemAlloc 2 OUT_OF_MEMORY\n");
  EXPECT_EQ(Allocate(), CUDA_SUCCESS);
  const uint64_t used = ReadCounters().used_bytes;
  EXPECT_EQ(Allocate(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(ReadCounters().used_bytes, used);  // a call that fails did nothing
  EXPECT_EQ(Allocate(), CUDA_SUCCESS);
  EXPECT_EQ(AllocateInRuntime(), cudaSuccess);
}

TEST_F(Faults, Forever_AllLaterCallsFail) {
  Plan("cudaMalloc 2 UNKNOWN forever\n");
  EXPECT_EQ(AllocateInRuntime(), cudaSuccess);
  EXPECT_EQ(AllocateInRuntime(), cudaErrorUnknown);
  EXPECT_EQ(CUDART(cudaGetLastError)(), cudaErrorUnknown);
  EXPECT_EQ(AllocateInRuntime(), cudaErrorUnknown);
  EXPECT_EQ(Allocate(), CUDA_SUCCESS);
}

TEST_F(Faults, EachAfter_CountsAnewEveryTime) {
  Plan("cuMemAlloc 2 NOT_READY each after cuCtxSynchronize\n");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Allocate(), CUDA_SUCCESS);
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
    EXPECT_EQ(Allocate(), CUDA_SUCCESS);
    EXPECT_EQ(Allocate(), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(Allocate(), CUDA_SUCCESS);
  }
}

TEST_F(Faults, OnceAfter_FailsTheFirstTimeOnly) {
  Plan("cuMemAlloc 1 NOT_READY after cuCtxSynchronize\n");
  EXPECT_EQ(Allocate(), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  EXPECT_EQ(Allocate(), CUDA_ERROR_NOT_READY);
  ASSERT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  EXPECT_EQ(Allocate(), CUDA_SUCCESS);
}

TEST_F(Faults, CopiesAndEvents_AreCallsToo) {
  Plan(
      "cuMemcpyDtoHAsync 1 UNKNOWN\ncuMemcpyHtoD 1 UNKNOWN\ncuEventRecord 1 UNKNOWN\ncuStreamCreate 1 "
      "OUT_OF_MEMORY\n");
  CUdeviceptr memory = 0;
  ASSERT_EQ(CU(cuMemAlloc)(&memory, 512), CUDA_SUCCESS);
  int number = 0;
  EXPECT_EQ(CU(cuMemcpyDtoHAsync)(&number, memory, 4, nullptr), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(CU(cuMemcpyHtoD)(memory, &number, 4), CUDA_ERROR_UNKNOWN);
  CUevent event = nullptr;
  ASSERT_EQ(CU(cuEventCreate)(&event, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventRecord)(event, nullptr), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(CU(cuEventRecord)(event, nullptr), CUDA_SUCCESS);
  CUstream stream = nullptr;
  EXPECT_EQ(CU(cuStreamCreate)(&stream, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CU(cuStreamCreate)(&stream, 0), CUDA_SUCCESS);
}

TEST_F(Faults, MemoryInfo_LiesInBothInterfaces) {
  Plan("memory_info 3GiB 5GiB\n");
  size_t free = 0, total = 0;
  ASSERT_EQ(CU(cuMemGetInfo)(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, size_t{3} << 30);
  EXPECT_EQ(total, size_t{5} << 30);
  free = total = 0;
  ASSERT_EQ(CUDART(cudaMemGetInfo)(&free, &total), cudaSuccess);
  EXPECT_EQ(free, size_t{3} << 30);
  EXPECT_EQ(total, size_t{5} << 30);
}

TEST_F(Faults, Capacity_IsLessThanTheDeviceSays) {
  Plan("capacity 4MiB\n");
  size_t free = 0, total = 0;
  ASSERT_EQ(CU(cuMemGetInfo)(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, 256 * kMiB);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle frame = 0;
  EXPECT_EQ(CU(cuMemCreate)(&frame, kFrame, &properties, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemCreate)(&frame, kFrame, &properties, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemCreate)(&frame, kFrame, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Faults, Seed_FailsItsShareOfCallsThatTakeMemory) {
  Plan("seed:5,0.25");
  int failed = 0;
  for (int i = 0; i < 1000; ++i) {
    const CUresult result = Allocate();
    EXPECT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) << result;
    failed += result != CUDA_SUCCESS;
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  }
  EXPECT_NEAR(failed, 250, 60);  // more than 4 standard deviations of 14
}

TEST_F(Faults, MalformedPlan_LeavesNoDevice) {
  setenv("WEIR_EMULATED_FAULTS", "seed:x", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(CU(cuInit)(0), CUDA_ERROR_NO_DEVICE);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("expected seed:NUMBER"), std::string::npos);
}

// A handler that was registered before the device was used runs after the emulator's.
TEST_F(Faults, Teardown_CallsAfterTheExitHandlerAreDeinitialized) {
  const auto leave = [this] {
    std::atexit([] {
      if (Allocate() != CUDA_ERROR_DEINITIALIZED || AllocateInRuntime() != cudaErrorCudartUnloading) _exit(1);
    });
    Plan("teardown\n");
    if (Allocate() != CUDA_SUCCESS) _exit(2);
    std::exit(0);
  };
  EXPECT_EXIT(leave(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weir::emulated
