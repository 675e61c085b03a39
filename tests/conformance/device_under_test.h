// The device as a program sees it: the driver API in libcuda.so.1 and the runtime API in libcudart, both by
// dlopen. With WEIR_GPU=emulated… that is the emulated GPU beside this program, else the machine's own. Tests
// state what CUDA documents and nothing of either implementation.
#ifndef WEIR_TESTS_CONFORMANCE_DEVICE_UNDER_TEST_H_
#define WEIR_TESTS_CONFORMANCE_DEVICE_UNDER_TEST_H_

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace weir::conformance {

inline constexpr size_t kKiB = size_t{1} << 10, kMiB = size_t{1} << 20;

bool OnEmulator();

// Null when the library has no such name; `Function` is the type that cuda.h declares.
void* DriverFunction(const char* name);
void* RuntimeFunction(const char* name);
// Why the runtime API cannot be tested here; empty when it can.
const char* WhyNoRuntime();

template <typename Function>
Function* Found(void* function, const char* name) {
  EXPECT_NE(function, nullptr) << name << " is not there";
  return reinterpret_cast<Function*>(function);
}

// CU(cuMemAlloc)(...) calls the version of that function that cuda.h declares.
#define WEIR_STRING_(name) #name
#define WEIR_STRING(name) WEIR_STRING_(name)
#define CU(name)                                                                                      \
  (::weir::conformance::Found<decltype(name)>(::weir::conformance::DriverFunction(WEIR_STRING(name)), \
                                              WEIR_STRING(name)))
#define CUDART(name)                                                                                     \
  (::weir::conformance::Found<decltype(::name)>(::weir::conformance::RuntimeFunction(WEIR_STRING(name)), \
                                                WEIR_STRING(name)))

#define ASSERT_CU(call) ASSERT_EQ(call, CUDA_SUCCESS)
#define EXPECT_CU(call) EXPECT_EQ(call, CUDA_SUCCESS)

// What a call against the rules may answer where the documentation lists codes and no case for each.
bool IsRefusal(CUresult status);

// Runs `body` in a process of its own, started anew: for what leaves a context unusable. A failed expectation
// in there fails the test.
void ExpectInChild(const std::function<void()>& body);

int Attribute(CUdevice_attribute attribute);

// Device 0 with its primary context current.
class Device : public ::testing::Test {
 protected:
  void SetUp() override;

  // A byte pattern in device memory, and back: synchronous, on the legacy stream.
  static void Write(CUdeviceptr address, uint8_t value, size_t size);
  static std::vector<uint8_t> Read(CUdeviceptr address, size_t size);
  // How many of the bytes are `value`.
  static size_t Count(CUdeviceptr address, uint8_t value, size_t size);
};

}  // namespace weir::conformance

#endif
