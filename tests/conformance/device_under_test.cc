#include "tests/conformance/device_under_test.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace weir::conformance {
namespace {

namespace fs = std::filesystem;

// Programs lie in bin/, libraries in lib/ beside it.
std::string EmulatorPath() {
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib/emulated_gpu/libcuda.so.1";
}

void* Driver() {
  static void* library =
      dlopen(OnEmulator() ? EmulatorPath().c_str() : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library;
}

// The emulator's runtime lies in the same library. A real one is where CUDART_LIBRARY says, or where the loader
// finds it.
void* Runtime() {
  if (OnEmulator()) return Driver();
  static void* library = [] {
    void* found = nullptr;
    const char* named = std::getenv("CUDART_LIBRARY");
    for (const char* name : {named, "libcudart.so.13", "libcudart.so.12"}) {
      if (found == nullptr && name != nullptr) found = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    return found;
  }();
  return library;
}

}  // namespace

bool OnEmulator() {
  static const bool emulated = [] {
    const char* gpu = std::getenv("WEIR_GPU");
    return gpu != nullptr && std::string(gpu).rfind("emulated", 0) == 0;
  }();
  return emulated;
}

void* DriverFunction(const char* name) { return Driver() == nullptr ? nullptr : dlsym(Driver(), name); }
void* RuntimeFunction(const char* name) { return Runtime() == nullptr ? nullptr : dlsym(Runtime(), name); }

const char* WhyNoRuntime() {
  return Runtime() == nullptr ? "no libcudart.so.13 or .12 is found; CUDART_LIBRARY names one" : "";
}

bool IsRefusal(CUresult status) {
  return status == CUDA_ERROR_INVALID_VALUE || status == CUDA_ERROR_INVALID_DEVICE ||
         status == CUDA_ERROR_NOT_PERMITTED || status == CUDA_ERROR_NOT_SUPPORTED ||
         status == CUDA_ERROR_INVALID_HANDLE;
}

void ExpectInChild(const std::function<void()>& body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a forked child has no device
  EXPECT_EXIT(
      {
        body();
        std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

int Attribute(CUdevice_attribute attribute) {
  int value = 0;
  EXPECT_CU(CU(cuDeviceGetAttribute)(&value, attribute, 0));
  return value;
}

void Device::SetUp() {
  ASSERT_NE(Driver(), nullptr) << "the driver cannot be loaded: " << dlerror();
  ASSERT_CU(CU(cuInit)(0));
  CUcontext context = nullptr;
  ASSERT_CU(CU(cuDevicePrimaryCtxRetain)(&context, 0));
  ASSERT_CU(CU(cuCtxSetCurrent)(context));
}

void Device::Write(CUdeviceptr address, uint8_t value, size_t size) {
  ASSERT_CU(CU(cuMemsetD8)(address, value, size));
  ASSERT_CU(CU(cuCtxSynchronize)());
}

std::vector<uint8_t> Device::Read(CUdeviceptr address, size_t size) {
  std::vector<uint8_t> bytes(size);
  EXPECT_CU(CU(cuMemcpyDtoH)(bytes.data(), address, size));
  return bytes;
}

size_t Device::Count(CUdeviceptr address, uint8_t value, size_t size) {
  const std::vector<uint8_t> bytes = Read(address, size);
  return static_cast<size_t>(std::count(bytes.begin(), bytes.end(), value));
}

}  // namespace weir::conformance
