// The emulator as a program sees it: libcuda.so.1 by dlopen, functions by name. A small device (256 MiB; WEIR_TEST_GPU says otherwise),
// kernels cpu unless the test's environment says otherwise. The primary context is current on the main
// thread.
#ifndef WEIR_TESTS_EMULATED_GPU_DRIVER_UNDER_TEST_H_
#define WEIR_TESTS_EMULATED_GPU_DRIVER_UNDER_TEST_H_

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tools/emulated_gpu/device/counters_abi.h"

#ifndef WEIR_TEST_GPU
#define WEIR_TEST_GPU "emulated:h200"
#endif

namespace weir::emulated {

inline constexpr size_t kMiB = size_t{1} << 20;
inline constexpr size_t kFrame = 2 * kMiB;

inline void* Library() {
  static void* library = [] {
    setenv("WEIR_GPU", WEIR_TEST_GPU, 1);
    setenv("WEIR_EMULATED_VRAM", "256MiB", 1);
    return dlopen(WEIR_EMULATOR_PATH, RTLD_NOW | RTLD_LOCAL);
  }();
  return library;
}

template <typename Function>
Function* Named(const char* name) {
  void* found = Library() == nullptr ? nullptr : dlsym(Library(), name);
  EXPECT_NE(found, nullptr) << name;
  return reinterpret_cast<Function*>(found);
}

// CU(cuMemMap)(...) calls the newest version of that function.
#define WEIR_STRING_(name) #name
#define WEIR_STRING(name) WEIR_STRING_(name)
#define CU(name) (::weir::emulated::Named<decltype(name)>(WEIR_STRING(name)))

inline WeirEmulatedCounters ReadCounters() {
  WeirEmulatedCounters counters{};
  Named<void(WeirEmulatedCounters*)>("weir_emulated_counters")(&counters);
  return counters;
}

// Every test starts with a live context, and tells what it expects to be reported.
class EmulatedDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
    CUcontext context = nullptr;
    ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCtxSetCurrent)(context), CUDA_SUCCESS);
    reports_before_ = ReadCounters().reports;
  }

  static CUstream NewStream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream stream = nullptr;
    EXPECT_EQ(CU(cuStreamCreate)(&stream, flags), CUDA_SUCCESS);
    return stream;
  }
  static CUevent NewEvent(unsigned flags = CU_EVENT_DISABLE_TIMING) {
    CUevent event = nullptr;
    EXPECT_EQ(CU(cuEventCreate)(&event, flags), CUDA_SUCCESS);
    return event;
  }

  uint64_t NewReports() const { return ReadCounters().reports - reports_before_; }

 private:
  uint64_t reports_before_ = 0;
};

}  // namespace weir::emulated

#endif
