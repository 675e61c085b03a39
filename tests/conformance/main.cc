// As GoogleTest's own main, but a machine without a driver is one line and not a crash.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/conformance/device_under_test.h"

int main(int count, char** words) {
  ::testing::InitGoogleTest(&count, words);
  if (!GTEST_FLAG_GET(list_tests) && weir::conformance::DriverFunction("cuInit") == nullptr) {
    std::fprintf(stderr,
                 "no driver: libcuda.so.1 cannot be loaded; WEIR_GPU=emulated:h200 tests the emulated GPU\n");
    return 4;
  }
  return RUN_ALL_TESTS();
}
