// Error codes: driver API documentation, the call that each test names.
#include <string>
#include <thread>

#include "tests/conformance/device_under_test.h"

namespace weir::conformance {
namespace {

class Errors : public Device {};

// A process that has called nothing yet.
class BeforeInit : public ::testing::Test {};

// cuInit: "If cuInit() has not been called, any function from the driver API will return
// CUDA_ERROR_NOT_INITIALIZED."
TEST_F(BeforeInit, Calls_AreNotInitialized) {
  ExpectInChild([] {
    int count = 0;
    EXPECT_EQ(CU(cuDeviceGetCount)(&count), CUDA_ERROR_NOT_INITIALIZED);
    CUdeviceptr address = 0;
    EXPECT_EQ(CU(cuMemAlloc)(&address, 4096), CUDA_ERROR_NOT_INITIALIZED);
    CUstream stream = nullptr;
    EXPECT_EQ(CU(cuStreamCreate)(&stream, 0), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(CU(cuMemAddressReserve)(&address, 2 * kMiB, 0, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
  });
}

// cuInit: flags must be 0. It may be called again.
TEST_F(Errors, Init_Again_SucceedsAndFlagsAreRefused) {
  EXPECT_CU(CU(cuInit)(0));
  EXPECT_EQ(CU(cuInit)(1), CUDA_ERROR_INVALID_VALUE);
}

// cuDriverGetVersion: 1000 major + 10 minor, and INVALID_VALUE for null.
TEST_F(Errors, DriverVersion_IsThatOfAKnownCuda) {
  int version = 0;
  ASSERT_CU(CU(cuDriverGetVersion)(&version));
  EXPECT_GE(version, 12000);
  EXPECT_EQ(CU(cuDriverGetVersion)(nullptr), CUDA_ERROR_INVALID_VALUE);
}

// cuDeviceGet, cuDeviceGetAttribute: INVALID_DEVICE for an ordinal beyond the last, INVALID_VALUE for an
// attribute that is not one.
TEST_F(Errors, Device_ThatIsNot_IsInvalid) {
  int count = 0, value = 0;
  ASSERT_CU(CU(cuDeviceGetCount)(&count));
  CUdevice device = 0;
  EXPECT_EQ(CU(cuDeviceGet)(&device, count), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(CU(cuDeviceGet)(&device, -1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, count),
            CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuDeviceGetAttribute)(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_ERROR_INVALID_VALUE);
}

// cuCtxGetCurrent: null without a context; calls that need one give INVALID_CONTEXT.
TEST_F(Errors, Thread_WithoutContext_IsRefused) {
  std::thread([] {
    CUcontext context = nullptr;
    ASSERT_CU(CU(cuCtxGetCurrent)(&context));
    EXPECT_EQ(context, nullptr);
    CUstream stream = nullptr;
    EXPECT_EQ(CU(cuStreamCreate)(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    CUdeviceptr address = 0;
    EXPECT_EQ(CU(cuMemAlloc)(&address, 4096), CUDA_ERROR_INVALID_CONTEXT);
    CUevent event = nullptr;
    EXPECT_EQ(CU(cuEventCreate)(&event, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
}

// cuCtxPushCurrent, cuCtxPopCurrent: a stack per thread.
TEST_F(Errors, Contexts_AreAStackPerThread) {
  CUcontext mine = nullptr, popped = nullptr, left = nullptr;
  ASSERT_CU(CU(cuCtxGetCurrent)(&mine));
  ASSERT_CU(CU(cuCtxPushCurrent)(mine));
  ASSERT_CU(CU(cuCtxPopCurrent)(&popped));
  EXPECT_EQ(popped, mine);
  ASSERT_CU(CU(cuCtxGetCurrent)(&left));
  EXPECT_EQ(left, mine);
}

// cuDevicePrimaryCtxRetain: the same context every time; it lives until as many releases.
TEST_F(Errors, PrimaryContext_IsOne) {
  CUcontext current = nullptr, again = nullptr;
  ASSERT_CU(CU(cuCtxGetCurrent)(&current));
  ASSERT_CU(CU(cuDevicePrimaryCtxRetain)(&again, 0));
  EXPECT_EQ(again, current);
  ASSERT_CU(CU(cuDevicePrimaryCtxRelease)(0));
  EXPECT_CU(CU(cuCtxSynchronize)());
}

// cuGetErrorName, cuGetErrorString: text for each code; INVALID_VALUE and a null pointer for what is no code.
TEST_F(Errors, Codes_HaveNames) {
  const struct {
    CUresult error;
    const char* name;
  } known[] = {{CUDA_SUCCESS, "CUDA_SUCCESS"},
               {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
               {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
               {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED"},
               {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE"},
               {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
               {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
               {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
               {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"}};
  for (const auto& [error, name] : known) {
    const char *given = nullptr, *text = nullptr;
    ASSERT_CU(CU(cuGetErrorName)(error, &given));
    ASSERT_CU(CU(cuGetErrorString)(error, &text));
    EXPECT_EQ(std::string(given), name);
    EXPECT_NE(std::string(text), "");
  }
  const char* given = "untouched";
  EXPECT_EQ(CU(cuGetErrorName)(static_cast<CUresult>(54321), &given), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(given, nullptr);
}

// cuMemAlloc, cuMemAllocHost: "If bytesize is 0 … returns CUDA_ERROR_INVALID_VALUE."
TEST_F(Errors, Allocation_OfNothing_IsInvalid) {
  CUdeviceptr address = 0;
  void* host = nullptr;
  EXPECT_EQ(CU(cuMemAlloc)(&address, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemAllocHost)(&host, 0), CUDA_ERROR_INVALID_VALUE);
}

// cuMemAlloc: OUT_OF_MEMORY, after which the context works on.
TEST_F(Errors, OutOfMemory_DoesNotStick) {
  size_t total = 0;
  ASSERT_CU(CU(cuDeviceTotalMem)(&total, 0));
  CUdeviceptr address = 0;
  EXPECT_EQ(CU(cuMemAlloc)(&address, 2 * total), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CU(CU(cuCtxSynchronize)());
  ASSERT_CU(CU(cuMemAlloc)(&address, 4096));
  EXPECT_CU(CU(cuMemFree)(address));
}

// cuMemAlloc: "suitably aligned for any kind of variable"; cudaMalloc's alignment is 256 bytes at least.
TEST_F(Errors, Allocation_IsAligned) {
  CUdeviceptr address = 0;
  ASSERT_CU(CU(cuMemAlloc)(&address, 1));
  EXPECT_EQ(address % 256, 0u);
  EXPECT_CU(CU(cuMemFree)(address));
}

// cuMemFree: the address "must have been returned by a previous call" of an allocation; INVALID_VALUE.
TEST_F(Errors, Free_Twice_IsInvalid) {
  ExpectInChild([] {
    CUdeviceptr address = 0;
    EXPECT_CU(CU(cuMemAlloc)(&address, 4096));
    EXPECT_CU(CU(cuMemFree)(address));
    EXPECT_EQ(CU(cuMemFree)(address), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_F(Errors, Free_InsideAnAllocation_IsInvalid) {
  ExpectInChild([] {
    CUdeviceptr address = 0;
    EXPECT_CU(CU(cuMemAlloc)(&address, 4096));
    EXPECT_EQ(CU(cuMemFree)(address + 256), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(CU(cuMemFree)(address));
  });
}

// cuMemFreeHost: INVALID_VALUE for what cuMemHostAlloc did not give.
TEST_F(Errors, FreeHost_OfOrdinaryMemory_IsInvalid) {
  ExpectInChild([] {
    std::vector<char> ordinary(8192);
    EXPECT_EQ(CU(cuMemFreeHost)(ordinary.data()), CUDA_ERROR_INVALID_VALUE);
  });
}

// cuMemHostRegister, cuMemHostUnregister: HOST_MEMORY_ALREADY_REGISTERED and HOST_MEMORY_NOT_REGISTERED.
TEST_F(Errors, HostRegistration_TwiceOrNever_HasItsOwnCodes) {
  void* pages = nullptr;
  ASSERT_EQ(posix_memalign(&pages, 4096, 8192), 0);
  ASSERT_CU(CU(cuMemHostRegister)(pages, 8192, 0));
  EXPECT_EQ(CU(cuMemHostRegister)(pages, 8192, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_CU(CU(cuMemHostUnregister)(pages));
  EXPECT_EQ(CU(cuMemHostUnregister)(pages), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  free(pages);
}

// cuStreamCreate, cuEventCreate: INVALID_VALUE for flags that are none and for no place to put the handle.
TEST_F(Errors, Flags_ThatAreNone_AreInvalid) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  EXPECT_EQ(CU(cuStreamCreate)(&stream, 0x80), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuEventCreate)(&event, 0x80), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuStreamCreate)(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuEventCreate)(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

// cuEventRecord, cuEventQuery, …: INVALID_HANDLE for no event.
TEST_F(Errors, NoEvent_IsAnInvalidHandle) {
  EXPECT_EQ(CU(cuEventRecord)(nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuEventQuery)(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuEventSynchronize)(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuEventDestroy)(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuStreamWaitEvent)(nullptr, nullptr, 0), CUDA_ERROR_INVALID_HANDLE);
}

// cuMemcpy…: nothing to copy is no error.
TEST_F(Errors, Copy_OfNothing_Succeeds) {
  CUdeviceptr address = 0;
  char byte = 0;
  ASSERT_CU(CU(cuMemAlloc)(&address, 4096));
  EXPECT_CU(CU(cuMemcpyHtoD)(address, &byte, 0));
  EXPECT_CU(CU(cuMemcpyDtoH)(&byte, address, 0));
  EXPECT_CU(CU(cuMemcpyDtoDAsync)(address, address, 0, nullptr));
  EXPECT_CU(CU(cuMemsetD8)(address, 1, 0));
  EXPECT_CU(CU(cuMemFree)(address));
}

// cuMemcpyDtoH, cuMemcpyHtoD with no address: INVALID_VALUE.
TEST_F(Errors, Copy_WithoutAnAddress_IsInvalid) {
  CUdeviceptr address = 0;
  ASSERT_CU(CU(cuMemAlloc)(&address, 4096));
  EXPECT_EQ(CU(cuMemcpyDtoH)(nullptr, address, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemcpyHtoD)(address, nullptr, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(CU(cuMemFree)(address));
}

// cuGetProcAddress: NOT_FOUND-like results come in `symbolStatus`, known names give a function.
TEST_F(Errors, EntryPoint_ByName_IsFoundOrSaysSo) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_CU(CU(cuGetProcAddress)("cuMemAlloc", &function, 12000, 0, &result));
  EXPECT_NE(function, nullptr);
  EXPECT_EQ(result, CU_GET_PROC_ADDRESS_SUCCESS);
  CU(cuGetProcAddress)("cuNoSuchFunction", &function, 12000, 0, &result);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(result, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

}  // namespace
}  // namespace weir::conformance
