#include "allocator/base/nvtx_range.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

namespace weir {
namespace {

void RunEverything() {
  NameThisThread("weir mapper");
  NameStream(Stream(17), "weir out");
  NvtxRange evict(RangeKind::kEvict, MiB(2));
  { NvtxRange wait(RangeKind::kWait, Bytes(0)); }
  { NvtxRange fetch(RangeKind::kFetch, Bytes(uint64_t{1} << 40)); }
  NvtxRange oom(RangeKind::kOutOfMemory, Bytes(7));
}

// ctest runs each test in its own process: NVTX looks for a tool only once.
TEST(NvtxRange, NoTool_NothingIsBuilt) {
  unsetenv("NVTX_INJECTION64_PATH");
  StartNvtx(NvtxMode::kOn);
  EXPECT_FALSE(NvtxAttached());
  RunEverything();
}

TEST(NvtxRange, OffWithTool_ToolIsNotLoaded) {
  setenv("NVTX_INJECTION64_PATH", FAKE_NVTX_TOOL, 1);
  StartNvtx(NvtxMode::kOff);
  RunEverything();
  EXPECT_FALSE(NvtxAttached());
  EXPECT_EQ(dlopen(FAKE_NVTX_TOOL, RTLD_NOW | RTLD_NOLOAD), nullptr);
}

TEST(NvtxRange, Tool_SeesDomainNamesRangesAndBytes) {
  setenv("NVTX_INJECTION64_PATH", FAKE_NVTX_TOOL, 1);
  StartNvtx(NvtxMode::kAuto);
  ASSERT_TRUE(NvtxAttached());
  RunEverything();
  void* tool = dlopen(FAKE_NVTX_TOOL, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(tool, nullptr);
  const auto record = reinterpret_cast<const char* (*)()>(dlsym(tool, "fake_nvtx_tool_record"));
  EXPECT_STREQ(record(),
               "domain weir\nthread weir mapper\nstream 17 weir out\n"
               "push evict 2097152\npush wait 0\npop\npush fetch 1099511627776\npop\npush oom 7\npop\npop\n");
}

}  // namespace
}  // namespace weir
