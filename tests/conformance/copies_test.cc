// Copies and memsets: driver API documentation, "API synchronization behavior" (which calls return before the
// work is done, and when pageable memory is read) and "Memory Management".
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "tests/conformance/order_fixture.h"

namespace weir::conformance {
namespace {

class Copies : public Order {
 protected:
  static std::vector<uint8_t> Numbers(size_t size) {
    std::vector<uint8_t> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251);
    return bytes;
  }
};

// The bytes arrive, whatever the stream and the kind of host memory.
TEST_F(Copies, ThereAndBack_GivesTheSameBytes) {
  const std::vector<uint8_t> sent = Numbers(3 * kMiB + 17);
  const size_t size = sent.size();
  const CUdeviceptr here = NewMemory(size), there = NewMemory(size);
  uint8_t* pinned = NewPinned(size);
  for (const CUstream stream : {NewStream(), CUstream{nullptr}, CU_STREAM_PER_THREAD}) {
    std::vector<uint8_t> received(size);
    ASSERT_CU(CU(cuMemcpyHtoDAsync)(here, sent.data(), size, stream));
    ASSERT_CU(CU(cuMemcpyDtoDAsync)(there, here, size, stream));
    ASSERT_CU(CU(cuMemcpyDtoHAsync)(pinned, there, size, stream));
    ASSERT_CU(CU(cuStreamSynchronize)(stream));
    EXPECT_EQ(std::memcmp(pinned, sent.data(), size), 0);
    ASSERT_CU(CU(cuMemsetD8Async)(here, 0, size, stream));
    ASSERT_CU(CU(cuMemcpyHtoDAsync)(here, pinned, size, stream));
    ASSERT_CU(CU(cuMemcpyDtoHAsync)(received.data(), here, size, stream));
    ASSERT_CU(CU(cuStreamSynchronize)(stream));
    EXPECT_EQ(received, sent);
    std::memset(pinned, 0, size);
  }
}

// Unaligned addresses and sizes; the neighbours stay.
TEST_F(Copies, OfAnyAlignment_LeaveTheNeighbours) {
  const CUdeviceptr memory = NewMemory(4096);
  Write(memory, 0xee, 4096);
  const std::vector<uint8_t> sent = Numbers(1001);
  ASSERT_CU(CU(cuMemcpyHtoD)(memory + 3, sent.data(), sent.size()));
  const std::vector<uint8_t> all = Read(memory, 4096);
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), all.begin() + 3));
  for (const size_t i : {size_t{0}, size_t{2}, sent.size() + 3, size_t{4095}}) EXPECT_EQ(all[i], 0xee) << i;
}

// cuMemcpy: unified addressing tells the direction.
TEST_F(Copies, WithoutDirection_FollowTheAddresses) {
  const CUdeviceptr memory = NewMemory(4096);
  uint8_t* pinned = NewPinned(2 * 4096);
  std::iota(pinned, pinned + 4096, 0);
  ASSERT_CU(CU(cuMemcpy)(memory, reinterpret_cast<CUdeviceptr>(pinned), 4096));
  ASSERT_CU(CU(cuMemcpy)(reinterpret_cast<CUdeviceptr>(pinned + 4096), memory, 4096));
  EXPECT_EQ(std::memcmp(pinned, pinned + 4096, 4096), 0);
}

// "Asynchronous": with pinned memory the call returns before the copy is done, here before it can have begun.
TEST_F(Copies, AsyncPinned_BehindAClosedGate_Return) {
  const CUstream stream = NewStream();
  const CUdeviceptr memory = NewMemory(4 * 4096);
  uint8_t* pinned = NewPinned(2 * 4096);
  Gate& gate = Held(stream);
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 0x11, 4096, stream));
  ASSERT_CU(CU(cuMemcpyHtoDAsync)(memory + 4096, pinned, 4096, stream));
  ASSERT_CU(CU(cuMemcpyDtoDAsync)(memory + 2 * 4096, memory, 4096, stream));
  ASSERT_CU(CU(cuMemcpyDtoHAsync)(pinned + 4096, memory + 2 * 4096, 4096, stream));
  EXPECT_FALSE(gate.Passed());
  EXPECT_EQ(pinned[4096], 0);
  gate.Open();
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_EQ(pinned[4096], 0x11);
}

// A pinned source is read when the copy runs: what a host function of the stream wrote before is seen.
TEST_F(Copies, AsyncPinned_ReadTheirSourceInStreamOrder) {
  const CUstream stream = NewStream();
  const CUdeviceptr memory = NewMemory(4096);
  uint8_t* pinned = NewPinned(4096);
  Gate& gate = Held(stream);
  Call(stream, [pinned] { std::memset(pinned, 0x22, 4096); });
  ASSERT_CU(CU(cuMemcpyHtoDAsync)(memory, pinned, 4096, stream));
  gate.Open();
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_EQ(Count(memory, 0x22, 4096), 4096u);
}

// "For transfers from pageable host memory to device memory, host memory is copied to a staging buffer
// immediately": the caller may overwrite it once the call has returned.
TEST_F(Copies, AsyncPageable_MayBeOverwrittenAfterTheCall) {
  const CUstream stream = NewStream();
  for (const size_t size : {size_t{64}, 40 * kKiB, 65 * kKiB, 4 * kMiB}) {
    const CUdeviceptr memory = NewMemory(size);
    std::vector<uint8_t> pageable(size, 0x33);
    ASSERT_CU(CU(cuMemcpyHtoDAsync)(memory, pageable.data(), size, stream));
    std::fill(pageable.begin(), pageable.end(), 0x44);
    ASSERT_CU(CU(cuStreamSynchronize)(stream));
    EXPECT_EQ(Count(memory, 0x33, size), size);
  }
}

// "For transfers from device memory to pageable host memory, the function will return only once the copy has
// completed."
TEST_F(Copies, AsyncToPageable_AreDoneWhenTheCallReturns) {
  const CUstream stream = NewStream();
  const CUdeviceptr memory = NewMemory(4 * kMiB);
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 0x55, 4 * kMiB, stream));
  std::vector<uint8_t> pageable(4 * kMiB);
  ASSERT_CU(CU(cuMemcpyDtoHAsync)(pageable.data(), memory, pageable.size(), stream));
  EXPECT_EQ(std::count(pageable.begin(), pageable.end(), 0x55), static_cast<long>(pageable.size()));
}

// A synchronous copy is in the legacy stream: it waits for blocking streams. The delay only makes a copy that
// does not wait show itself.
TEST_F(Copies, Synchronous_WaitForBlockingStreams) {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT);
  const CUdeviceptr memory = NewMemory(4096);
  uint8_t* pinned = NewPinned(4096);
  Call(blocking, [pinned] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::memset(pinned, 0x66, 4096);
  });
  ASSERT_CU(CU(cuMemcpyHtoD)(memory, pinned, 4096));
  EXPECT_EQ(Count(memory, 0x66, 4096), 4096u);
}

// A copy on another stream sees what it waits for.
TEST_F(Copies, OfAnotherStream_SeeWhatTheyWaitFor) {
  const CUstream writer = NewStream(), reader = NewStream();
  const CUevent written = NewEvent();
  const CUdeviceptr memory = NewMemory(kMiB);
  uint8_t* pinned = NewPinned(kMiB);
  Write(memory, 0, kMiB);
  for (int round = 1; round <= 20; ++round) {
    ASSERT_CU(CU(cuMemsetD8Async)(memory, static_cast<unsigned char>(round), kMiB, writer));
    ASSERT_CU(CU(cuEventRecord)(written, writer));
    ASSERT_CU(CU(cuStreamWaitEvent)(reader, written, 0));
    ASSERT_CU(CU(cuMemcpyDtoHAsync)(pinned, memory, kMiB, reader));
    ASSERT_CU(CU(cuStreamSynchronize)(reader));
    ASSERT_EQ(std::count(pinned, pinned + kMiB, round), static_cast<long>(kMiB)) << round;
  }
}

// Host memory that was registered copies as pinned memory does.
TEST_F(Copies, OfRegisteredMemory_Return) {
  const CUstream stream = NewStream();
  const CUdeviceptr memory = NewMemory(4096);
  void* pages = nullptr;
  ASSERT_EQ(posix_memalign(&pages, 4096, 4096), 0);
  std::memset(pages, 0x77, 4096);
  ASSERT_CU(CU(cuMemHostRegister)(pages, 4096, 0));
  Gate& gate = Held(stream);
  ASSERT_CU(CU(cuMemcpyHtoDAsync)(memory, pages, 4096, stream));
  EXPECT_FALSE(gate.Passed());
  gate.Open();
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_EQ(Count(memory, 0x77, 4096), 4096u);
  ASSERT_CU(CU(cuMemHostUnregister)(pages));
  free(pages);
}

// cuMemcpy2DAsync: `Height` rows of `WidthInBytes`, each end with its pitch; what lies between the rows stays.
TEST_F(Copies, OfRows_LeaveWhatLiesBetween) {
  constexpr size_t kWidth = 100, kHeight = 50, kPitch = 128, kHostPitch = 160;
  const CUstream stream = NewStream();
  const CUdeviceptr memory = NewMemory(kPitch * kHeight);
  Write(memory, 0xee, kPitch * kHeight);
  uint8_t* pinned = NewPinned(kHostPitch * kHeight);
  for (size_t i = 0; i < kHostPitch * kHeight; ++i) pinned[i] = static_cast<uint8_t>(i % 200);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = pinned;
  copy.srcPitch = kHostPitch;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.dstPitch = kPitch;
  copy.WidthInBytes = kWidth;
  copy.Height = kHeight;
  ASSERT_CU(CU(cuMemcpy2DAsync)(&copy, stream));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  const std::vector<uint8_t> all = Read(memory, kPitch * kHeight);
  for (size_t row = 0; row < kHeight; ++row) {
    for (size_t column = 0; column < kPitch; ++column) {
      const uint8_t expected = column < kWidth ? pinned[row * kHostPitch + column] : 0xee;
      ASSERT_EQ(all[row * kPitch + column], expected) << row << ", " << column;
    }
  }
}

// cuMemsetD8, D16, D32: `N` elements of that size.
TEST_F(Copies, Memsets_RepeatTheirElement) {
  const CUdeviceptr memory = NewMemory(4096);
  Write(memory, 0xee, 4096);
  ASSERT_CU(CU(cuMemsetD8)(memory, 0x01, 3));
  ASSERT_CU(CU(cuMemsetD16)(memory + 16, 0x0203, 3));
  ASSERT_CU(CU(cuMemsetD32)(memory + 32, 0x04050607, 3));
  const CUstream stream = NewStream();
  ASSERT_CU(CU(cuCtxSynchronize)());
  ASSERT_CU(CU(cuMemsetD16Async)(memory + 64, 0x0809, 2, stream));
  ASSERT_CU(CU(cuMemsetD32Async)(memory + 80, 0x0a0b0c0d, 2, stream));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  const std::vector<uint8_t> all = Read(memory, 4096);
  const auto expect = [&](size_t at, std::vector<uint8_t> bytes) {
    bytes.push_back(0xee);  // the byte after the last element stays
    for (size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(all[at + i], bytes[i]) << at + i;
  };
  expect(0, {1, 1, 1});
  expect(16, {3, 2, 3, 2, 3, 2});  // little-endian, as the host
  expect(32, {7, 6, 5, 4, 7, 6, 5, 4, 7, 6, 5, 4});
  expect(64, {9, 8, 9, 8});
  expect(80, {0x0d, 0x0c, 0x0b, 0x0a, 0x0d, 0x0c, 0x0b, 0x0a});
}

// cuMemsetD16: "The dstDevice pointer must be two byte aligned", cuMemsetD32 four.
TEST_F(Copies, Memsets_OfUnalignedMemory_AreInvalid) {
  const CUdeviceptr memory = NewMemory(4096);
  EXPECT_EQ(CU(cuMemsetD16)(memory + 1, 0, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemsetD32)(memory + 2, 0, 4), CUDA_ERROR_INVALID_VALUE);
}

// cuMemsetD2D8, D2D16, D2D32: rows of `Width` elements, `dstPitch` bytes apart.
TEST_F(Copies, MemsetsOfRows_LeaveWhatLiesBetween) {
  const CUdeviceptr memory = NewMemory(3 * 512);
  Write(memory, 0xee, 3 * 512);
  ASSERT_CU(CU(cuMemsetD2D32)(memory, 512, 0x01010101, 4, 3));
  ASSERT_CU(CU(cuCtxSynchronize)());
  EXPECT_EQ(Count(memory, 1, 3 * 512), 3u * 4 * 4);
  EXPECT_EQ(Count(memory + 512, 1, 16), 16u);
}

}  // namespace
}  // namespace weir::conformance
