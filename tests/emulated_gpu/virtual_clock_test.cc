// The virtual clock against schedules that are added up by hand: a copy of N bytes takes N ns alone, 2 N beside one of the
// other way; a kernel that reads N bytes takes N / 2 (round_profile.h).
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/emulated_gpu/driver_under_test.h"
#include "tests/emulated_gpu/round_profile.h"
#include "tools/emulated_gpu/device/clock_abi.h"

namespace weir::emulated {
namespace {

constexpr size_t kBytes = 1000;

class VirtualClock : public EmulatedDevice {
 protected:
  void SetUp() override {
    static const ProfileFile file(kRoundProfile);
    ASSERT_NE(Library(), nullptr);
    setenv("WEIR_GPU", ("emulated:" + file.path()).c_str(), 1);
    setenv("WEIR_EMULATED_TIMING", "1", 1);  // queries follow the clock alone
    EmulatedDevice::SetUp();
    ASSERT_EQ(CU(cuMemAlloc)(&device_, 16 * kBytes), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemHostAlloc)(&pinned_, 16 * kBytes, 0), CUDA_SUCCESS);
    start_ = Now();
  }
  void TearDown() override { EXPECT_EQ(NewReports(), 0u); }

  static int64_t Now() { return Named<int64_t()>("weir_emulated_now_ns")(); }
  // Since the test began.
  int64_t Passed() const { return Now() - start_; }
  static void Charge(int64_t nanoseconds) {
    Named<void(int, uint64_t)>("weir_emulated_charge")(WEIR_CHARGE_NANOSECONDS,
                                                       static_cast<uint64_t>(nanoseconds));
  }
  static WeirEmulatedUsage Usage() {
    WeirEmulatedUsage usage;
    Named<void(WeirEmulatedUsage*)>("weir_emulated_usage")(&usage);
    return usage;
  }

  // Each use has bytes of its own, `place` times kBytes into the buffers, so that nothing but the clock orders them.
  void CopyIn(CUstream stream, size_t bytes, size_t place) {
    ASSERT_EQ(CU(cuMemcpyHtoDAsync)(device_ + place * kBytes, Pinned(place), bytes, stream), CUDA_SUCCESS);
  }
  void CopyOut(CUstream stream, size_t bytes, size_t place) {
    ASSERT_EQ(CU(cuMemcpyDtoHAsync)(Pinned(place), device_ + place * kBytes, bytes, stream), CUDA_SUCCESS);
  }
  void Kernel(CUstream stream, size_t bytes, size_t place) {
    const WeirEmulatedAccess access{device_ + place * kBytes, bytes, WEIR_EMULATED_WRITE, 0, 1, 0, 1};
    Named<void(void*, const char*, const WeirEmulatedAccess*, size_t)>("weir_emulated_test_kernel")(
        stream, "kernel", &access, 1);
  }
  static CUevent Record(CUstream stream) {
    const CUevent event = NewEvent(CU_EVENT_DEFAULT);
    EXPECT_EQ(CU(cuEventRecord)(event, stream), CUDA_SUCCESS);
    return event;
  }
  static void Wait(CUstream stream, CUevent event) {
    ASSERT_EQ(CU(cuStreamWaitEvent)(stream, event, 0), CUDA_SUCCESS);
  }
  // The time of the event, since the test began: what the host waits until.
  int64_t TimeOf(CUevent event) {
    EXPECT_EQ(CU(cuEventSynchronize)(event), CUDA_SUCCESS);
    return Passed();
  }
  void* Pinned(size_t place) { return static_cast<char*>(pinned_) + place * kBytes; }

  CUdeviceptr device_ = 0;
  void* pinned_ = nullptr;
  int64_t start_ = 0;
};

TEST_F(VirtualClock, OneCopy_TakesItsBytesOverTheLink) {
  const CUstream stream = NewStream();
  CopyIn(stream, kBytes, 0);
  EXPECT_EQ(Passed(), 0);  // the host goes on
  ASSERT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_EQ(Passed(), 1000);
}

TEST_F(VirtualClock, CopyAndKernelOnTwoStreams_Overlap) {
  const CUstream copies = NewStream(), kernels = NewStream();
  CopyIn(copies, 1000, 0);
  Kernel(kernels, 3000, 4);  // 1500 ns
  EXPECT_EQ(TimeOf(Record(copies)), 1000);
  EXPECT_EQ(TimeOf(Record(kernels)), 1500);
}

TEST_F(VirtualClock, PipelineOfCopiesAndKernels_IsBoundByTheLongerOfThem) {
  const CUstream copies = NewStream(), kernels = NewStream();
  CUevent done = nullptr;
  for (size_t i = 0; i < 3; ++i) {  // copies end at 1000, 2000, 3000; each kernel takes 300 after its copy
    CopyIn(copies, 1000, i);
    Wait(kernels, Record(copies));
    Kernel(kernels, 600, i);
    done = Record(kernels);
  }
  EXPECT_EQ(TimeOf(done), 3300);
  EXPECT_EQ(Usage().sms, 900);
  EXPECT_EQ(Usage().copy_in, 3000);
  EXPECT_EQ(Usage().sms_idle_for_others, 1000 + 700 + 700);
}

TEST_F(VirtualClock, TwoStreamsOfOneDirection_ShareTheEngine) {
  const CUstream first = NewStream(), second = NewStream();
  CopyIn(first, 1000, 0);
  CopyIn(second, 500, 1);
  EXPECT_EQ(TimeOf(Record(second)), 1500);
}

TEST_F(VirtualClock, KernelsOfTwoStreams_RunOneAfterTheOther) {
  const CUstream first = NewStream(), second = NewStream();
  Kernel(first, 1000, 0);
  Kernel(second, 1000, 1);
  EXPECT_EQ(TimeOf(Record(first)), 500);
  EXPECT_EQ(TimeOf(Record(second)), 1000);
}

TEST_F(VirtualClock, WorkThatFitsIntoAGap_RunsBeforeWorkThatWasEnqueuedEarlier) {
  const CUstream copies = NewStream(), late = NewStream(), early = NewStream();
  CopyIn(copies, 1000, 0);
  Wait(late, Record(copies));
  Kernel(late, 200, 0);    // 1000 to 1100
  Kernel(early, 2000, 2);  // fits exactly before
  Kernel(early, 200, 2);   // and this one does not
  EXPECT_EQ(TimeOf(Record(late)), 1100);
  EXPECT_EQ(TimeOf(Record(early)), 1200);
}

TEST_F(VirtualClock, BothDirections_SlowEachOtherDown) {
  const CUstream in = NewStream(), out = NewStream();
  CopyIn(in, 1000, 0);    // its time was told: 0 to 1000
  CopyOut(out, 1000, 1);  // half of it beside the other, 500 bytes by 1000, the rest alone
  // The first lost 500 bytes in those 1000 ns: the next of its direction carries them, 1500 in all; 250 by 1500, the
  // rest alone.
  CopyIn(in, 1000, 2);
  EXPECT_EQ(TimeOf(Record(out)), 1500);
  EXPECT_EQ(TimeOf(Record(in)), 1500 + 1250);
  CopyIn(in, 1000, 3);  // once is enough
  EXPECT_EQ(TimeOf(Record(in)), 3750);
}

TEST_F(VirtualClock, BothDirections_WhatWasLostIsMadeUpWhenNothingFollows) {
  const CUstream in = NewStream(), out = NewStream();
  CopyIn(in, 1000, 0);
  CopyOut(out, 1000, 1);
  EXPECT_EQ(TimeOf(Record(out)), 1500);  // the first would have been done by now
  CopyIn(in, 1000, 2);
  EXPECT_EQ(TimeOf(Record(in)), 2500);
}

TEST_F(VirtualClock, PageableCopies_AreSlowAndTheHostWaits) {
  const CUstream stream = NewStream();
  std::vector<char> pageable(kBytes);
  ASSERT_EQ(CU(cuMemcpyHtoDAsync)(device_, pageable.data(), kBytes, stream), CUDA_SUCCESS);
  EXPECT_EQ(Passed(), 4000);  // staged
  ASSERT_EQ(CU(cuMemcpyDtoHAsync)(pageable.data(), device_, kBytes, stream), CUDA_SUCCESS);
  EXPECT_EQ(Passed(), 8000);
}

TEST_F(VirtualClock, BlockingCopyToTheHost_WaitsForTheWorkBeforeIt) {
  Kernel(nullptr, 2000, 0);
  ASSERT_EQ(CU(cuMemcpyDtoH)(Pinned(0), device_, kBytes), CUDA_SUCCESS);
  EXPECT_EQ(Passed(), 1000 + 1000);
  EXPECT_EQ(Usage().host_blocked, 2000);
}

TEST_F(VirtualClock, ElapsedTime_IsThatOfTheWorkBetween) {
  const CUstream stream = NewStream();
  const CUevent before = Record(stream);
  Kernel(stream, 8000, 0);
  CopyIn(stream, 2500, 0);
  const CUevent after = Record(stream);
  float milliseconds = 0;
  EXPECT_EQ(CU(cuEventElapsedTime)(&milliseconds, before, after), CUDA_ERROR_NOT_READY);
  ASSERT_EQ(CU(cuEventSynchronize)(after), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventElapsedTime)(&milliseconds, before, after), CUDA_SUCCESS);
  EXPECT_FLOAT_EQ(milliseconds, 0.0065f);
}

TEST_F(VirtualClock, EventOfAnIdleStream_IsAtTheHostsTime) {
  const CUstream stream = NewStream();
  const CUevent before = Record(stream);
  Charge(700);
  const CUevent after = Record(stream);
  float milliseconds = 0;
  ASSERT_EQ(CU(cuEventElapsedTime)(&milliseconds, before, after), CUDA_SUCCESS);
  EXPECT_FLOAT_EQ(milliseconds, 0.0007f);
}

TEST_F(VirtualClock, Query_IsReadyWhenTheHostHasWorkedAsLong) {
  const CUstream stream = NewStream();
  CopyIn(stream, 1000, 0);
  const CUevent event = Record(stream);
  Charge(999);
  EXPECT_EQ(CU(cuEventQuery)(event), CUDA_ERROR_NOT_READY);
  Charge(1);
  EXPECT_EQ(CU(cuEventQuery)(event), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamQuery)(stream), CUDA_SUCCESS);
  EXPECT_EQ(Passed(), 1000);
}

TEST_F(VirtualClock, PollingLoop_EndsAtTheTimeOfTheWork) {
  const CUstream stream = NewStream();
  CopyIn(stream, 1000, 0);
  int polls = 0;
  while (CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY) ASSERT_LT(++polls, 100);
  EXPECT_GT(polls, 0);
  EXPECT_EQ(Passed(), 1000);
}

TEST_F(VirtualClock, DeviceSynchronize_WaitsForAllStreams) {
  CopyIn(NewStream(), 1000, 0);
  Kernel(NewStream(), 4000, 2);
  ASSERT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  EXPECT_EQ(Passed(), 2000);
}

TEST_F(VirtualClock, LegacyStream_ComesAfterBlockingStreamsAndBeforeTheirNextWork) {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT);
  CopyIn(blocking, 1000, 0);
  Kernel(nullptr, 400, 1);
  CopyOut(blocking, 100, 2);
  EXPECT_EQ(TimeOf(Record(blocking)), 1300);
}

TEST_F(VirtualClock, ThreadsThatTakeTurnsOnAStream_HandTheirTimeOver) {
  const CUstream stream = NewStream(), other = NewStream();
  Charge(500);
  std::thread([&] {
    CU(cuCtxSetCurrent)
    ([] {
      CUcontext context = nullptr;
      CU(cuDevicePrimaryCtxRetain)(&context, 0);
      return context;
    }());
    Charge(1000);  // a new thread starts at the latest time: it is at 1500
    EXPECT_EQ(Passed(), 1500);
    Record(stream);
  }).join();
  EXPECT_EQ(Passed(), 500);
  Record(other);  // nothing in common
  EXPECT_EQ(Passed(), 500);
  Record(stream);
  EXPECT_EQ(Passed(), 1500);
}

TEST_F(VirtualClock, BackgroundTask_RunsAtItsOwnTime) {
  const auto switch_to = Named<int64_t(int64_t)>("weir_emulated_switch_ns");
  const CUstream stream = NewStream(), other = NewStream();
  Charge(5000);
  const int64_t foreground = switch_to(start_ + 1000);
  EXPECT_EQ(foreground - start_, 5000);
  CopyIn(stream, 1000, 0);
  EXPECT_EQ(Passed(), 1000);
  const int64_t background = switch_to(foreground);
  EXPECT_EQ(background - start_, 1000);
  Kernel(other, 200, 1);
  EXPECT_EQ(TimeOf(Record(other)), 5100);
  EXPECT_EQ(CU(cuStreamQuery)(stream), CUDA_SUCCESS);  // done at 2000
  EXPECT_EQ(Passed(), 5100);
}

TEST_F(VirtualClock, HostThatIsFarAhead_WaitsForTheQueue) {
  const CUstream stream = NewStream();
  for (int i = 0; i < 1024; ++i) Kernel(stream, 200, 0);  // 100 ns each
  EXPECT_EQ(Passed(), 0);
  Kernel(stream, 200, 0);
  EXPECT_EQ(Passed(), 100);  // the first is done
  Kernel(stream, 200, 0);
  EXPECT_EQ(Passed(), 200);
  Kernel(NewStream(), 200, 1);
  EXPECT_EQ(Passed(), 200);
}

TEST_F(VirtualClock, MappingCalls_TakeTimeForEachHandle) {
  CUdeviceptr range = 0;
  ASSERT_EQ(CU(cuMemAddressReserve)(&range, 3 * kFrame, 0, 0, 0), CUDA_SUCCESS);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handles[3];
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(CU(cuMemCreate)(&handles[i], kFrame, &properties, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemMap)(range + i * kFrame, kFrame, 0, handles[i], 0), CUDA_SUCCESS);
  }
  EXPECT_EQ(Passed(), 3 * (7000 + 2000));
  ASSERT_EQ(CU(cuMemSetAccess)(range, 3 * kFrame, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(Passed(), 27000 + 90000);
  ASSERT_EQ(CU(cuMemUnmap)(range, 3 * kFrame), CUDA_SUCCESS);
  EXPECT_EQ(Passed(), 117000 + 60000);
  for (const CUmemGenericAllocationHandle handle : handles) ASSERT_EQ(CU(cuMemRelease)(handle), CUDA_SUCCESS);
  EXPECT_EQ(Passed(), 177000 + 15000);
  EXPECT_EQ(Usage().mapper, 192000);
}

TEST_F(VirtualClock, Charges_AreThoseOfTheProfile) {
  const auto charge = Named<void(int, uint64_t)>("weir_emulated_charge");
  charge(WEIR_CHARGE_OP, 3);
  charge(WEIR_CHARGE_MALLOC, 2);
  charge(WEIR_CHARGE_FREE, 1000);    // torch's own takes as long, and is in the time of an operator
  charge(WEIR_CHARGE_CANDIDATE, 5);  // not rounded one by one
  charge(99, 1000);
  charge(-1, 1000);
  EXPECT_EQ(Passed(), 3 * 500 + 2 * (250 - 50) + 2);
  EXPECT_EQ(Usage().host_weir, 1902);
}

TEST_F(VirtualClock, Drive_IsAnEngineOfItsOwn) {
  const auto nvme = Named<int64_t(int, uint64_t)>("weir_emulated_nvme");
  EXPECT_EQ(nvme(0, 1000) - start_, 1000 + 3000);
  const int64_t second = nvme(0, 1000);
  EXPECT_EQ(second - start_, 2000 + 3000);
  EXPECT_EQ(Passed(), 0);
  Named<void(int64_t)>("weir_emulated_wait_until")(second);
  EXPECT_EQ(Passed(), 5000);
}

// One random program, and its times: how lazily copies run may not show.
std::vector<int64_t> TimesOfAProgram(uint64_t seed, const std::function<int64_t()>& passed,
                                     const std::function<void(int, CUstream, size_t, size_t)>& enqueue) {
  Named<void(uint64_t)>("weir_emulated_reseed")(seed);
  CUstream streams[3];
  for (CUstream& stream : streams) CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  std::vector<int64_t> times;
  uint64_t random = 7;  // of the program
  const int64_t begin = passed();
  for (int i = 0; i < 60; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const size_t which = random >> 60 & 3;
    enqueue(static_cast<int>(random >> 33 & 3), streams[which % 3], which % 3, random >> 40 & 511);
    if (i % 20 == 19) {
      CU(cuStreamSynchronize)(streams[i / 20]);
      times.push_back(passed() - begin);
    }
  }
  CU(cuCtxSynchronize)();
  times.push_back(passed() - begin);
  return times;
}

TEST_F(VirtualClock, LazinessSeed_DoesNotMoveIt) {
  const auto enqueue = [&](int kind, CUstream stream, size_t place, size_t bytes) {
    if (kind == 0) CopyIn(stream, bytes + 1, place);
    if (kind == 1) CopyOut(stream, bytes + 1, place);
    if (kind == 2) Charge(static_cast<int64_t>(bytes));
    if (kind == 3) CU(cuMemsetD8Async)(device_ + place * kBytes, 1, bytes + 1, stream);
  };
  const auto passed = [&] { return Passed(); };
  TimesOfAProgram(0, passed, enqueue);  // the copies that come before the first
  const std::vector<int64_t> expected = TimesOfAProgram(0, passed, enqueue);
  EXPECT_GT(expected.front(), 0);
  for (const uint64_t seed : {0, 1, 2, 99})
    EXPECT_EQ(TimesOfAProgram(seed, passed, enqueue), expected) << seed;
}

}  // namespace
}  // namespace weir::emulated
