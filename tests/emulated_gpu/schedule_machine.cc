#include "tests/emulated_gpu/schedule_machine.h"

#include <cstring>
#include <map>

#include "tests/emulated_gpu/driver_under_test.h"

namespace weir::emulated {
namespace {

struct FrameBuffer {
  CUdeviceptr addresses = 0, mapped[2] = {};  // room for the first mapping and two places of the second
  CUmemGenericAllocationHandle frame = 0;
};

void MapFrame(CUdeviceptr address, CUmemGenericAllocationHandle frame) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  EXPECT_EQ(CU(cuMemMap)(address, kFrame, 0, frame, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemSetAccess)(address, kFrame, &access, 1), CUDA_SUCCESS);
}

class Machine {
 public:
  Machine() {
    streams_[0] = nullptr;
    for (int i = 1; i < kStreams; ++i) {
      const unsigned flags = i == 1 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
      EXPECT_EQ(CU(cuStreamCreate)(&streams_[i], flags), CUDA_SUCCESS);
    }
    for (CUdeviceptr& allocation : allocations_)
      EXPECT_EQ(CU(cuMemAlloc)(&allocation, kBufferBytes), CUDA_SUCCESS);
    for (FrameBuffer& buffer : frames_) MakeFrame(buffer);
    for (void*& pinned : pinned_) {
      EXPECT_EQ(CU(cuMemHostAlloc)(&pinned, kBufferBytes, 0), CUDA_SUCCESS);
      std::memset(pinned, 0, kBufferBytes);
    }
  }

  ~Machine() {
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
    for (int i = 1; i < kStreams; ++i) EXPECT_EQ(CU(cuStreamDestroy)(streams_[i]), CUDA_SUCCESS);
    for (const auto& [number, event] : events_) EXPECT_EQ(CU(cuEventDestroy)(event), CUDA_SUCCESS);
    for (const CUdeviceptr allocation : allocations_) EXPECT_EQ(CU(cuMemFree)(allocation), CUDA_SUCCESS);
    for (const FrameBuffer& buffer : frames_) {
      for (const CUdeviceptr mapped : buffer.mapped) EXPECT_EQ(CU(cuMemUnmap)(mapped, kFrame), CUDA_SUCCESS);
      EXPECT_EQ(CU(cuMemRelease)(buffer.frame), CUDA_SUCCESS);
      EXPECT_EQ(CU(cuMemAddressFree)(buffer.addresses, 3 * kFrame), CUDA_SUCCESS);
    }
    for (void* pinned : pinned_) EXPECT_EQ(CU(cuMemFreeHost)(pinned), CUDA_SUCCESS);
  }

  void Run(const Line& line) {
    const CUstream stream = streams_[line.stream];
    switch (line.kind) {
      case Kind::kKernel:
        Kernel(line, stream);
        break;
      case Kind::kCopy:
        EXPECT_EQ(
            CU(cuMemcpyAsync)(Begin(line.parts[1]), Begin(line.parts[0]), BytesOf(line.parts[0]), stream),
            CUDA_SUCCESS);
        break;
      case Kind::kMemset:
        EXPECT_EQ(CU(cuMemsetD8Async)(Begin(line.parts[0]), static_cast<unsigned char>(line.number),
                                      BytesOf(line.parts[0]), stream),
                  CUDA_SUCCESS);
        break;
      case Kind::kRecord:
        EXPECT_EQ(CU(cuEventRecord)(Event(line.event), stream), CUDA_SUCCESS);
        break;
      case Kind::kWait:
        EXPECT_EQ(CU(cuStreamWaitEvent)(stream, Event(line.event), 0), CUDA_SUCCESS);
        break;
      case Kind::kSyncEvent:
        EXPECT_EQ(CU(cuEventSynchronize)(Event(line.event)), CUDA_SUCCESS);
        break;
      case Kind::kPoll:
        while (CU(cuEventQuery)(Event(line.event)) == CUDA_ERROR_NOT_READY) {
        }
        break;
      case Kind::kSyncStream:
        EXPECT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
        break;
      case Kind::kSyncDevice:
        EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
        break;
      case Kind::kReplace:
        EXPECT_EQ(CU(cuMemFree)(allocations_[line.buffer]), CUDA_SUCCESS);
        EXPECT_EQ(CU(cuMemAlloc)(&allocations_[line.buffer], kBufferBytes), CUDA_SUCCESS);
        break;
      case Kind::kMove:
        Move(frames_[line.buffer - kAllocations]);
        break;
    }
  }

  std::vector<std::vector<uint8_t>> Bytes() {
    std::vector<std::vector<uint8_t>> all;
    for (int buffer = 0; buffer < kBuffers; ++buffer) {
      Part whole;
      whole.buffer = buffer;
      const uint8_t* bytes = At(whole);
      all.emplace_back(bytes, bytes + kBufferBytes);
    }
    return all;
  }

 private:
  static void MakeFrame(FrameBuffer& buffer) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    EXPECT_EQ(CU(cuMemAddressReserve)(&buffer.addresses, 3 * kFrame, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemCreate)(&buffer.frame, kFrame, &properties, 0), CUDA_SUCCESS);
    for (int i = 0; i < 2; ++i)
      MapFrame(buffer.mapped[i] = buffer.addresses + static_cast<size_t>(i) * kFrame, buffer.frame);
  }

  static void Move(FrameBuffer& buffer) {
    EXPECT_EQ(CU(cuMemUnmap)(buffer.mapped[1], kFrame), CUDA_SUCCESS);
    buffer.mapped[1] = 2 * buffer.addresses + 3 * kFrame - buffer.mapped[1];  // the other of the two places
    MapFrame(buffer.mapped[1], buffer.frame);
  }

  CUevent Event(int number) {
    CUevent& event = events_[number];
    if (event != nullptr) return event;
    EXPECT_EQ(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    return event;
  }

  uint8_t* At(const Part& part) {
    if (part.buffer >= kPinned) return static_cast<uint8_t*>(pinned_[part.buffer - kPinned]);
    const CUdeviceptr address = part.buffer < kAllocations
                                    ? allocations_[part.buffer]
                                    : frames_[part.buffer - kAllocations].mapped[part.mapping];
    return reinterpret_cast<uint8_t*>(address);
  }
  CUdeviceptr Begin(const Part& part) { return reinterpret_cast<CUdeviceptr>(At(part) + part.first * kUnit); }
  static size_t BytesOf(const Part& part) { return static_cast<size_t>(part.count) * kUnit; }

  void Kernel(const Line& line, CUstream stream) {
    static const auto announce =
        Named<void(void*, const char*, const WeirEmulatedAccess*, size_t)>("weir_emulated_test_kernel");
    std::vector<WeirEmulatedAccess> accesses;
    for (const Part& part : line.parts) {
      const size_t rows = part.columns ? kUnits / kColumns : 1;
      accesses.push_back({Begin(part), BytesOf(part), part.write ? WEIR_EMULATED_WRITE : WEIR_EMULATED_READ,
                          size_t{kColumns} * kUnit, rows, 0, 1});
    }
    announce(stream, "a kernel of the test", accesses.data(), accesses.size());
    RunWork(line, [&](const Part& part) { return At(part); });
  }

  CUstream streams_[kStreams] = {};
  CUdeviceptr allocations_[kAllocations] = {};
  FrameBuffer frames_[kPinned - kAllocations];
  void* pinned_[kBuffers - kPinned] = {};
  std::map<int, CUevent> events_;
};

}  // namespace

Outcome RunOnEmulator(const Program& program, uint64_t laziness) {
  Named<void(uint64_t)>("weir_emulated_reseed")(laziness);
  Outcome outcome;
  Machine machine;
  const uint64_t before = ReadCounters().reports;
  for (const Line& line : program) machine.Run(line);
  outcome.reports = ReadCounters().reports - before;
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  outcome.buffers = machine.Bytes();
  return outcome;
}

}  // namespace weir::emulated
