#include "tests/conformance/order_fixture.h"

#include <chrono>
#include <cstring>
#include <thread>

namespace weir::conformance {
namespace {

bool UntilTwoSecondsPass(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

void Gate::Wait(void* gate) {
  auto* self = static_cast<Gate*>(gate);
  if (!UntilTwoSecondsPass([self] { return self->open_.load(); })) self->gave_up_ = true;
  self->passed_ = true;
}

void Gate::Hold(CUstream stream) { ASSERT_CU(CU(cuLaunchHostFunc)(stream, Wait, this)); }

void Order::TearDown() {
  for (Gate& gate : gates_) gate.Open();
  EXPECT_CU(CU(cuCtxSynchronize)());
  for (const Gate& gate : gates_)
    EXPECT_FALSE(gate.GaveUp()) << "a call waited for what it must not wait for";
  for (const CUevent event : events_) EXPECT_CU(CU(cuEventDestroy)(event));
  for (const CUstream stream : streams_) EXPECT_CU(CU(cuStreamDestroy)(stream));
  for (const CUdeviceptr address : memory_) EXPECT_CU(CU(cuMemFree)(address));
  for (void* address : pinned_) EXPECT_CU(CU(cuMemFreeHost)(address));
}

CUstream Order::NewStream(unsigned flags) {
  CUstream stream = nullptr;
  EXPECT_CU(CU(cuStreamCreate)(&stream, flags));
  streams_.push_back(stream);
  return stream;
}

CUevent Order::NewEvent(unsigned flags) {
  CUevent event = nullptr;
  EXPECT_CU(CU(cuEventCreate)(&event, flags));
  events_.push_back(event);
  return event;
}

Gate& Order::Held(CUstream stream) {
  gates_.emplace_back();
  gates_.back().Hold(stream);
  return gates_.back();
}

CUdeviceptr Order::NewMemory(size_t size) {
  CUdeviceptr address = 0;
  EXPECT_CU(CU(cuMemAlloc)(&address, size));
  memory_.push_back(address);
  return address;
}

uint8_t* Order::NewPinned(size_t size) {
  void* address = nullptr;
  EXPECT_CU(CU(cuMemHostAlloc)(&address, size, 0));
  pinned_.push_back(address);
  std::memset(address, 0, size);
  return static_cast<uint8_t*>(address);
}

void Order::Call(CUstream stream, std::function<void()> function) {
  functions_.push_back(std::move(function));
  const auto run = [](void* kept) { (*static_cast<std::function<void()>*>(kept))(); };
  ASSERT_CU(CU(cuLaunchHostFunc)(stream, run, &functions_.back()));
}

bool Order::Finishes(CUstream stream) {
  CUresult status = CUDA_ERROR_NOT_READY;
  UntilTwoSecondsPass([&] { return (status = CU(cuStreamQuery)(stream)) != CUDA_ERROR_NOT_READY; });
  return status == CUDA_SUCCESS;
}

}  // namespace weir::conformance
