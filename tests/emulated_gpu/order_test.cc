// Happens-before (correctness R18): accesses that nothing orders are reported, ordered ones never. Copies and memsets
// stand for all work.
#include <string>
#include <vector>

#include "tests/emulated_gpu/driver_under_test.h"

namespace weir::emulated {
namespace {

class Order : public EmulatedDevice {
 protected:
  static CUdeviceptr NewMemory(size_t size = kMiB) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CU(cuMemAlloc)(&address, size), CUDA_SUCCESS);
    return address;
  }
  static char* NewPinned(size_t size = kMiB) {
    void* address = nullptr;
    EXPECT_EQ(CU(cuMemHostAlloc)(&address, size, 0), CUDA_SUCCESS);
    return static_cast<char*>(address);
  }
  static void Write(CUdeviceptr address, CUstream stream, size_t size = 4096) {
    ASSERT_EQ(CU(cuMemsetD8Async)(address, 1, size, stream), CUDA_SUCCESS);
  }
  // Into memory that nothing else touches.
  static void Read(CUdeviceptr address, CUstream stream, size_t size = 4096) {
    ASSERT_EQ(CU(cuMemcpyDtoDAsync)(NewMemory(size), address, size, stream), CUDA_SUCCESS);
  }
  // Work of `after` that is enqueued from now on comes after the work of `before` until now.
  static void Wait(CUstream after, CUstream before) {
    const CUevent event = NewEvent();
    ASSERT_EQ(CU(cuEventRecord)(event, before), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamWaitEvent)(after, event, 0), CUDA_SUCCESS);
  }
};

TEST_F(Order, Read_OnAnotherStreamThanTheWrite_IsReported) {
  const CUstream one = NewStream(), other = NewStream();
  const CUdeviceptr memory = NewMemory();
  Write(memory, one);
  ::testing::internal::CaptureStderr();
  Read(memory, other);
  const std::string report = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(report.find("read of 0x"), std::string::npos) << report;
  EXPECT_NE(report.find("not ordered after the write by memset on stream"), std::string::npos) << report;
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Order, Write_OnAnotherStreamThanTheRead_IsReported) {
  const CUstream one = NewStream(), other = NewStream();
  const CUdeviceptr memory = NewMemory();
  Read(memory, one);
  Write(memory, other);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Order, Write_AfterOneOfTwoReaders_IsReported) {
  const CUstream one = NewStream(), other = NewStream(), writer = NewStream();
  const CUdeviceptr memory = NewMemory();
  Read(memory, one);
  Read(memory, other);
  Wait(writer, one);
  Write(memory, writer);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Order, Reads_OnTwoStreams_AreFine) {
  const CUdeviceptr memory = NewMemory();
  Read(memory, NewStream());
  Read(memory, NewStream());
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(Order, EventWait_OrdersDirectlyAndThroughAThirdStream) {
  const CUstream one = NewStream(), second = NewStream(), third = NewStream();
  const CUdeviceptr memory = NewMemory();
  Write(memory, one);
  Wait(second, one);
  Write(memory, second);
  Wait(third, second);
  Write(memory, third);
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(Order, EventWait_OnARecordBeforeTheWrite_DoesNotOrder) {
  const CUstream one = NewStream(), other = NewStream();
  const CUdeviceptr memory = NewMemory();
  const CUevent event = NewEvent();
  ASSERT_EQ(CU(cuEventRecord)(event, one), CUDA_SUCCESS);
  Write(memory, one);
  ASSERT_EQ(CU(cuStreamWaitEvent)(other, event, 0), CUDA_SUCCESS);
  Read(memory, other);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Order, EventWait_IsOnTheRecordAtTheTimeOfTheWait) {
  const CUstream one = NewStream(), other = NewStream();
  const CUdeviceptr memory = NewMemory();
  const CUevent event = NewEvent();
  ASSERT_EQ(CU(cuEventRecord)(event, one), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamWaitEvent)(other, event, 0), CUDA_SUCCESS);
  Write(memory, one);
  ASSERT_EQ(CU(cuEventRecord)(event, one), CUDA_SUCCESS);  // after the wait: does not count
  Read(memory, other);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Order, Synchronisation_OfEventStreamOrDevice_Orders) {
  const CUstream one = NewStream();
  const CUdeviceptr memory = NewMemory();
  const CUevent event = NewEvent();
  Write(memory, one);
  ASSERT_EQ(CU(cuEventRecord)(event, one), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventSynchronize)(event), CUDA_SUCCESS);
  Write(memory, NewStream());
  ASSERT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  const CUstream third = NewStream();
  Write(memory, third);
  ASSERT_EQ(CU(cuStreamSynchronize)(third), CUDA_SUCCESS);
  Write(memory, NewStream());
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(Order, LegacyStream_OrdersWithBlockingStreamsOnly) {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT), other = NewStream(CU_STREAM_DEFAULT);
  const CUdeviceptr memory = NewMemory(), second = NewMemory();
  Write(memory, blocking);
  Write(memory, nullptr);  // after all blocking streams
  Write(memory, other);    // after the legacy stream
  EXPECT_EQ(NewReports(), 0u);
  Write(memory, CU_STREAM_PER_THREAD);  // a blocking stream: not ordered with another one
  EXPECT_EQ(NewReports(), 1u);
  Write(second, nullptr);
  Write(second, NewStream(CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(NewReports(), 2u);
}

TEST_F(Order, LegacyStream_ComesAfterABlockingStreamThatDied) {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT);
  const CUdeviceptr memory = NewMemory();
  Write(memory, blocking);
  ASSERT_EQ(CU(cuStreamDestroy)(blocking), CUDA_SUCCESS);
  Write(memory, nullptr);
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(Order, StreamsMadeAfterOthersDied_AreNotTakenForThem) {
  const CUdeviceptr memory = NewMemory();
  const CUstream first = NewStream();
  Write(memory, first);
  ASSERT_EQ(CU(cuStreamDestroy)(first), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    const CUstream next = NewStream();
    Write(memory, next);  // its work before is in flight: not ordered
    ASSERT_EQ(CU(cuStreamDestroy)(next), CUDA_SUCCESS);
  }
  EXPECT_EQ(NewReports(), 3u);
  ASSERT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  Write(memory, NewStream());
  EXPECT_EQ(NewReports(), 3u);
}

TEST_F(Order, OverlapByOneByte_Conflicts_NeighboursDoNot) {
  const CUstream one = NewStream(), other = NewStream();
  const CUdeviceptr memory = NewMemory();
  Write(memory + 1000, one, 1000);
  Write(memory, other, 1000);
  Write(memory + 2000, other, 1000);
  EXPECT_EQ(NewReports(), 0u);
  Write(memory + 1999, NewStream(), 1);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Order, Columns_AreComparedByTheirRows) {
  const CUstream one = NewStream(), other = NewStream();
  const CUdeviceptr matrix = NewMemory();
  std::vector<char> source(64 * 256);
  const auto write_columns = [&](size_t first, size_t count, CUstream stream) {
    const auto copy =
        Named<int(void*, size_t, const void*, size_t, size_t, size_t, int, CUstream)>("cudaMemcpy2DAsync");
    const int kToDevice = 1;  // cudaMemcpyHostToDevice
    ASSERT_EQ(
        copy(reinterpret_cast<void*>(matrix + first), 256, source.data(), 256, count, 64, kToDevice, stream),
        0);
  };
  write_columns(0, 100, one);
  write_columns(100, 156, other);
  EXPECT_EQ(NewReports(), 0u);
  write_columns(99, 1, other);
  EXPECT_EQ(NewReports(), 1u);
}

class OrderOfFrames : public Order {
 protected:
  OrderOfFrames() {}
  void SetUp() override {
    Order::SetUp();
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    ASSERT_EQ(CU(cuMemAddressReserve)(&addresses_, 4 * kFrame, 0, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemCreate)(&frame_, kFrame, &properties, 0), CUDA_SUCCESS);
  }
  void MapAt(CUdeviceptr address) {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ASSERT_EQ(CU(cuMemMap)(address, kFrame, 0, frame_, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemSetAccess)(address, kFrame, &access, 1), CUDA_SUCCESS);
  }
  CUdeviceptr addresses_ = 0;
  CUmemGenericAllocationHandle frame_ = 0;
};

TEST_F(OrderOfFrames, TwoMappingsOfAFrame_AreOnePlace) {
  MapAt(addresses_);
  MapAt(addresses_ + kFrame);
  Write(addresses_, NewStream());
  Read(addresses_ + kFrame, NewStream());
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(OrderOfFrames, AFrameMappedElsewhere_KeepsItsLastUsers) {
  const CUstream one = NewStream();
  MapAt(addresses_);
  Write(addresses_, one);
  MapAt(addresses_ + kFrame);
  ASSERT_EQ(CU(cuStreamSynchronize)(one), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemUnmap)(addresses_, kFrame), CUDA_SUCCESS);
  Write(addresses_ + kFrame, one);
  Write(addresses_ + kFrame, NewStream());
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(OrderOfFrames, Unmap_OfARangeInFlight_IsReported) {
  const CUstream stream = NewStream();
  MapAt(addresses_);
  Write(addresses_, stream);
  EXPECT_EQ(CU(cuMemUnmap)(addresses_, kFrame), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(OrderOfFrames, Unmap_AfterItsWorkWasSeenComplete_IsFine) {
  const CUstream stream = NewStream();
  MapAt(addresses_);
  MapAt(addresses_ + kFrame);
  Write(addresses_, stream);
  ASSERT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  Write(addresses_ + kFrame, stream);  // in flight at the other address only
  EXPECT_EQ(CU(cuMemUnmap)(addresses_, kFrame), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(OrderOfFrames, AccessChange_OfARangeInFlight_IsReported) {
  MapAt(addresses_);
  Write(addresses_, NewStream());
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  EXPECT_EQ(CU(cuMemSetAccess)(addresses_, kFrame, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Order, Free_OfDeviceMemory_WaitsForTheDevice) {
  const CUdeviceptr memory = NewMemory(), other = NewMemory();
  Write(memory, NewStream());
  Write(other, NewStream());
  EXPECT_EQ(CU(cuMemFree)(memory), CUDA_SUCCESS);
  Write(other, NewStream());  // the free proved everything complete
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(Order, Free_OfPinnedMemoryInFlight_IsReported) {
  char* pinned = NewPinned();
  const CUstream stream = NewStream();
  ASSERT_EQ(CU(cuMemcpyHtoDAsync)(NewMemory(), pinned, kMiB, stream), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFreeHost)(pinned), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Order, Unregistration_OfHostMemoryInFlight_IsReported) {
  std::vector<char> bytes(8192);
  ASSERT_EQ(CU(cuMemHostRegister)(bytes.data(), bytes.size(), 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpyHtoDAsync)(NewMemory(), bytes.data(), bytes.size(), NewStream()), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemHostUnregister)(bytes.data()), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Order, PinnedMemory_IsComparedToo) {
  char* pinned = NewPinned();
  const CUdeviceptr memory = NewMemory();
  ASSERT_EQ(CU(cuMemcpyDtoHAsync)(pinned, memory, kMiB, NewStream()), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpyHtoDAsync)(NewMemory(), pinned, kMiB, NewStream()), CUDA_SUCCESS);
  EXPECT_EQ(NewReports(), 1u);
}

TEST_F(Order, BlockingCopyToTheHost_ProvesItsStream) {
  const CUstream stream = NewStream(CU_STREAM_DEFAULT);
  const CUdeviceptr memory = NewMemory();
  char byte = 0;
  Write(memory, stream);
  ASSERT_EQ(CU(cuMemcpyDtoH)(&byte, memory, 1), CUDA_SUCCESS);  // legacy stream: after the blocking one
  EXPECT_EQ(byte, 1);
  Write(memory, NewStream());
  EXPECT_EQ(NewReports(), 0u);
}

TEST_F(Order, BlockingCopyInsideTheDevice_ProvesNothing) {
  const CUdeviceptr from = NewMemory(), to = NewMemory();
  ASSERT_EQ(CU(cuMemcpyDtoD)(to, from, 4096), CUDA_SUCCESS);
  Write(to, NewStream());
  EXPECT_EQ(NewReports(), 1u);
}

}  // namespace
}  // namespace weir::emulated
