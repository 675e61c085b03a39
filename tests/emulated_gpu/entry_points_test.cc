// Every name is answered: by what it does, or by NOT_SUPPORTED and its name. Never by a silent success.
#include <cublas_v2.h>

#include <string>

#include "tests/emulated_gpu/driver_under_test.h"

namespace weir::emulated {
namespace {

class EntryPoints : public EmulatedDevice {
 protected:
  static int Call(const char* name) { return Named<int()>(name)(); }
};

TEST_F(EntryPoints, NotEmulated_FailsByNameOnce) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Call("cuIpcGetMemHandle"), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Call("cuIpcGetMemHandle"), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Call("cudaIpcGetMemHandle"), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Call("cudaMallocManaged"), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Call("cublasLtMatmulAlgoInit"), CUBLAS_STATUS_NOT_SUPPORTED);
  const std::string log = ::testing::internal::GetCapturedStderr();
  for (const char* name :
       {"cuIpcGetMemHandle", "cudaIpcGetMemHandle", "cudaMallocManaged", "cublasLtMatmulAlgoInit"}) {
    const size_t first = log.find(std::string(name) + " is not emulated");
    EXPECT_NE(first, std::string::npos) << name;
    EXPECT_EQ(log.find(std::string(name) + " is not emulated", first + 1), std::string::npos) << name;
  }
}

TEST_F(EntryPoints, ComputeRoutine_WithKernelsCpu_IsAnErrorByName) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Call("cublasSgemm_v2"), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("cublasSgemm_v2"), std::string::npos);
}

TEST_F(EntryPoints, GetProcAddress_GivesTheNewestVersion) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult result;
  ASSERT_EQ(CU(cuGetProcAddress)("cuMemAlloc", &function, 13000, 0, &result), CUDA_SUCCESS);
  EXPECT_EQ(result, CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT_EQ(function, dlsym(Library(), "cuMemAlloc_v2"));
}

TEST_F(EntryPoints, GetProcAddress_OfAnUnknownName_IsNotFound) {
  void* function = &function;
  CUdriverProcAddressQueryResult result;
  EXPECT_EQ(CU(cuGetProcAddress)("cuNoSuchThing", &function, 13000, 0, &result), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(result, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(function, nullptr);
}

TEST_F(EntryPoints, Device_IsTheProfile) {
  int value = 0;
  ASSERT_EQ(CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), CUDA_SUCCESS);
  EXPECT_EQ(value, 132);  // H200: 132 SMs
  CUdevice device = -1;
  EXPECT_EQ(CU(cuDeviceGet)(&device, 1), CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace
}  // namespace weir::emulated
