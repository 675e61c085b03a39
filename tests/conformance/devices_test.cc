// Two devices: driver API documentation, "Peer Context Memory Access", "Memory Management", "Event Management", "Virtual Memory
// Management"; runtime API documentation, "Device Management"; programming guide, "Multi-Device System". Skipped where there
// is one.
#include <cuda_runtime_api.h>

#include <thread>

#include "tests/conformance/order_fixture.h"

namespace weir::conformance {
namespace {

class Devices : public Order {
 protected:
  void SetUp() override {
    ASSERT_CU(CU(cuInit)(0));
    int count = 0;
    ASSERT_CU(CU(cuDeviceGetCount)(&count));
    if (count < 2) GTEST_SKIP() << "one device";
    Order::SetUp();
    for (int device = 0; device < 2; ++device) {
      ASSERT_CU(CU(cuDevicePrimaryCtxRetain)(&contexts_[device], device));
      ASSERT_CU(CU(cuDeviceCanAccessPeer)(&can_[device], device, 1 - device));
    }
    Use(0);
  }
  void TearDown() override {
    if (contexts_[1] == nullptr) return;  // skipped
    Use(0);
    Order::TearDown();
  }

  void Use(int device) { ASSERT_CU(CU(cuCtxSetCurrent)(contexts_[device])); }
  CUdeviceptr NewMemoryOn(int device, size_t size, uint8_t value) {
    Use(device);
    const CUdeviceptr memory = NewMemory(size);
    Write(memory, value, size);
    EXPECT_CU(CU(cuCtxSynchronize)());
    Use(0);
    return memory;
  }

  CUcontext contexts_[2] = {};
  int can_[2] = {};
};

// cuDeviceCanAccessPeer, cuDeviceGetP2PAttribute: of two different devices.
TEST_F(Devices, Peers_AreOtherDevices) {
  int can = 1, value = 0;
  EXPECT_CU(CU(cuDeviceCanAccessPeer)(&can, 0, 0));
  EXPECT_EQ(can, 0);
  EXPECT_EQ(CU(cuDeviceCanAccessPeer)(&can, 0, 1000), CUDA_ERROR_INVALID_DEVICE);
  ASSERT_CU(CU(cuDeviceGetP2PAttribute)(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
  EXPECT_EQ(value, can_[0]);
  EXPECT_EQ(CU(cuDeviceGetP2PAttribute)(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0),
            CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(CU(cuDeviceGetP2PAttribute)(&value, static_cast<CUdevice_P2PAttribute>(1000), 0, 1),
            CUDA_ERROR_INVALID_VALUE);
}

// cuCtxEnablePeerAccess, cuCtxDisablePeerAccess: each direction by itself, once.
TEST_F(Devices, PeerAccess_IsEnabledOnceAndDisabledOnce) {
  if (can_[0] == 0) {
    EXPECT_EQ(CU(cuCtxEnablePeerAccess)(contexts_[1], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    return;
  }
  EXPECT_EQ(CU(cuCtxDisablePeerAccess)(contexts_[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  EXPECT_EQ(CU(cuCtxEnablePeerAccess)(contexts_[1], 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(CU(cuCtxEnablePeerAccess)(contexts_[1], 0));
  EXPECT_EQ(CU(cuCtxEnablePeerAccess)(contexts_[1], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  Use(1);
  EXPECT_EQ(CU(cuCtxDisablePeerAccess)(contexts_[0]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  Use(0);
  EXPECT_CU(CU(cuCtxDisablePeerAccess)(contexts_[1]));
  EXPECT_EQ(CU(cuCtxDisablePeerAccess)(contexts_[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

// cuMemAlloc: "on the device" of the current context; cuMemGetInfo: of that device.
TEST_F(Devices, Memory_IsTakenOfTheCurrentDevice) {
  constexpr size_t kSize = 64 * kMiB;
  size_t before[2], after[2], total = 0;
  for (int device = 0; device < 2; ++device) {
    Use(device);
    ASSERT_CU(CU(cuMemGetInfo)(&before[device], &total));
  }
  const CUdeviceptr memory = NewMemory(kSize);  // on device 1
  for (int device = 0; device < 2; ++device) {
    Use(device);
    ASSERT_CU(CU(cuMemGetInfo)(&after[device], &total));
  }
  EXPECT_EQ(after[0], before[0]);
  EXPECT_LE(after[1], before[1] - kSize);
  int ordinal = -1;
  CUcontext context = nullptr;
  ASSERT_CU(CU(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
  ASSERT_CU(CU(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
  EXPECT_EQ(ordinal, 1);
  EXPECT_EQ(context, contexts_[1]);
}

// cuMemcpyPeer, and with unified addressing every other copy: no access to the peer is needed.
TEST_F(Devices, Copies_GoFromDeviceToDevice) {
  const CUdeviceptr one = NewMemoryOn(0, 4096, 1), two = NewMemoryOn(1, 4096, 2);
  ASSERT_CU(CU(cuMemcpyPeer)(one, contexts_[0], two, contexts_[1], 1024));
  EXPECT_EQ(Count(one, 2, 4096), 1024u);
  const CUstream stream = NewStream();
  ASSERT_CU(CU(cuMemcpyPeerAsync)(one, contexts_[0], two, contexts_[1], 2048, stream));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_EQ(Count(one, 2, 4096), 2048u);
  ASSERT_CU(CU(cuMemcpyDtoDAsync)(one, two, 4096, stream));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_EQ(Count(one, 2, 4096), 4096u);
}

// cuMemcpyPeer: "serialized with respect all pending and future asynchronous work in to the current context, the destination
// context, and the source context".
TEST_F(Devices, PeerCopy_ComesAfterTheWorkOfBothDevices) {
  const CUdeviceptr one = NewMemoryOn(0, 4096, 1), two = NewMemoryOn(1, 4096, 2);
  Use(1);
  const CUstream stream = NewStream(CU_STREAM_DEFAULT);
  ASSERT_CU(CU(cuMemsetD8Async)(two, 3, 4096, stream));
  Use(0);
  ASSERT_CU(CU(cuMemcpyPeer)(one, contexts_[0], two, contexts_[1], 4096));
  EXPECT_EQ(Count(one, 3, 4096), 4096u);
}

// cuEventRecord: event and stream of one context. cuStreamWaitEvent: they may be of different ones.
TEST_F(Devices, Event_IsRecordedOnItsDeviceAndWaitedForAnywhere) {
  const CUstream stream = NewStream();
  const CUevent event = NewEvent();
  const CUdeviceptr one = NewMemoryOn(0, 4096, 1), two = NewMemoryOn(1, 4096, 2);
  Use(1);
  const CUstream other = NewStream();
  EXPECT_EQ(CU(cuEventRecord)(event, other), CUDA_ERROR_INVALID_HANDLE);
  Gate& gate = Held(stream);
  ASSERT_CU(CU(cuMemsetD8Async)(one, 7, 4096, stream));
  ASSERT_CU(CU(cuEventRecord)(event, stream));  // whatever is current
  ASSERT_CU(CU(cuStreamWaitEvent)(other, event, 0));
  ASSERT_CU(CU(cuMemcpyDtoDAsync)(two, one, 4096, other));
  EXPECT_TRUE(Unfinished(other));
  gate.Open();
  ASSERT_CU(CU(cuCtxSynchronize)());  // of device 1: its stream came after device 0's work
  EXPECT_EQ(CU(cuEventQuery)(event), CUDA_SUCCESS);
  EXPECT_EQ(Count(two, 7, 4096), 4096u);
}

// cuEventElapsedTime: of events of one context.
TEST_F(Devices, ElapsedTime_OfEventsOfTwoDevices_IsRefused) {
  const CUevent start = NewEvent(CU_EVENT_DEFAULT);
  ASSERT_CU(CU(cuEventRecord)(start, nullptr));
  Use(1);
  const CUevent end = NewEvent(CU_EVENT_DEFAULT);
  ASSERT_CU(CU(cuEventRecord)(end, nullptr));
  ASSERT_CU(CU(cuEventSynchronize)(start));
  ASSERT_CU(CU(cuEventSynchronize)(end));
  float milliseconds = 0;
  EXPECT_EQ(CU(cuEventElapsedTime)(&milliseconds, start, end), CUDA_ERROR_INVALID_HANDLE);
}

// cuCtxSynchronize: the work of the current context.
TEST_F(Devices, Synchronize_WaitsForTheCurrentDevice) {
  const CUstream stream = NewStream();
  Gate& gate = Held(stream);
  Use(1);
  const CUdeviceptr memory = NewMemoryOn(1, 4096, 2);
  Use(1);
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 3, 4096, NewStream()));
  ASSERT_CU(CU(cuCtxSynchronize)());
  EXPECT_FALSE(gate.Passed());
  gate.Open();
  Use(0);
  ASSERT_CU(CU(cuCtxSynchronize)());
  EXPECT_TRUE(gate.Passed());
}

// Programming guide, "Implicit Synchronization" and "Default Stream": each device has a default stream of its own.
TEST_F(Devices, DefaultStreams_AreIndependent) {
  const CUstream stream = NewStream(CU_STREAM_DEFAULT);
  Gate& gate = Held(stream);
  const CUdeviceptr memory = NewMemoryOn(1, 4096, 2);
  Use(1);
  EXPECT_EQ(Count(memory, 2, 4096), 4096u);  // on the default stream of device 1
  EXPECT_FALSE(gate.Passed());
  Use(0);
  gate.Open();
}

// cuMemSetAccess: for each device by itself.
TEST_F(Devices, VirtualMemory_IsAccessibleToTheDevicesThatWereGivenIt) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {1}};
  CUmemGenericAllocationHandle frame = 0;
  CUdeviceptr address = 0;
  size_t unit = 0;
  ASSERT_CU(CU(cuMemGetAllocationGranularity)(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  ASSERT_CU(CU(cuMemCreate)(&frame, unit, &properties, 0));
  ASSERT_CU(CU(cuMemAddressReserve)(&address, unit, 0, 0, 0));
  ASSERT_CU(CU(cuMemMap)(address, unit, 0, frame, 0));
  const auto access_of = [&](int device) {
    unsigned long long flags = 1000;
    const CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    EXPECT_CU(CU(cuMemGetAccess)(&flags, &location, address));
    return flags;
  };
  std::vector<CUmemAccessDesc> descriptions = {
      {{CU_MEM_LOCATION_TYPE_DEVICE, {1}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
      {{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
  ASSERT_CU(CU(cuMemSetAccess)(address, unit, descriptions.data(), 1));
  EXPECT_EQ(access_of(0), CU_MEM_ACCESS_FLAGS_PROT_NONE);
  EXPECT_EQ(access_of(1), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  if (can_[0] != 0) {
    ASSERT_CU(CU(cuMemSetAccess)(address, unit, descriptions.data(), 2));
    EXPECT_EQ(access_of(0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
  CUmemAllocationProp told{};
  ASSERT_CU(CU(cuMemGetAllocationPropertiesFromHandle)(&told, frame));
  EXPECT_EQ(told.location.id, 1);
  ASSERT_CU(CU(cuMemUnmap)(address, unit));
  ASSERT_CU(CU(cuMemRelease)(frame));
  ASSERT_CU(CU(cuMemAddressFree)(address, unit));
}

// cudaSetDevice: the calling thread's device, and its primary context is current.
TEST_F(Devices, RuntimeDevice_IsTheCurrentContexts) {
  if (*WhyNoRuntime() != '\0') GTEST_SKIP() << WhyNoRuntime();
  int device = -1, other = -1;
  ASSERT_EQ(CUDART(cudaSetDevice)(1), cudaSuccess);
  ASSERT_EQ(CUDART(cudaGetDevice)(&device), cudaSuccess);
  EXPECT_EQ(device, 1);
  CUcontext context = nullptr;
  ASSERT_CU(CU(cuCtxGetCurrent)(&context));
  EXPECT_EQ(context, contexts_[1]);
  EXPECT_EQ(CUDART(cudaSetDevice)(1000), cudaErrorInvalidDevice);
  CUDART(cudaGetLastError)();
  std::thread([&other] { CUDART(cudaGetDevice)(&other); }).join();
  EXPECT_EQ(other, 0);
  Use(0);
  ASSERT_EQ(CUDART(cudaGetDevice)(&device), cudaSuccess);
  EXPECT_EQ(device, 0);
}

// cudaPointerGetAttributes, cudaMemcpyPeer.
TEST_F(Devices, Runtime_KnowsTheDeviceOfMemory) {
  if (*WhyNoRuntime() != '\0') GTEST_SKIP() << WhyNoRuntime();
  const CUdeviceptr one = NewMemoryOn(0, 4096, 1), two = NewMemoryOn(1, 4096, 2);
  cudaPointerAttributes told{};
  ASSERT_EQ(CUDART(cudaPointerGetAttributes)(&told, reinterpret_cast<void*>(two)), cudaSuccess);
  EXPECT_EQ(told.device, 1);
  ASSERT_EQ(CUDART(cudaMemcpyPeer)(reinterpret_cast<void*>(one), 0, reinterpret_cast<void*>(two), 1, 4096),
            cudaSuccess);
  EXPECT_EQ(Count(one, 2, 4096), 4096u);
  EXPECT_EQ(CUDART(cudaMemcpyPeer)(reinterpret_cast<void*>(one), 0, reinterpret_cast<void*>(two), 1000, 4096),
            cudaErrorInvalidDevice);
}

}  // namespace
}  // namespace weir::conformance
