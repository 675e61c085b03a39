// Streams, events and gates of one test. A gate is a host function that holds its stream until the test opens
// it: so a test decides what has run and what has not, without a clock. "Host functions without a mandated order …
// may be serialized" (cuLaunchHostFunc): what must pass a closed gate is a memset or a copy, never a host function.
#ifndef WEIR_TESTS_CONFORMANCE_ORDER_FIXTURE_H_
#define WEIR_TESTS_CONFORMANCE_ORDER_FIXTURE_H_

#include <atomic>
#include <list>
#include <vector>

#include "tests/conformance/device_under_test.h"

namespace weir::conformance {

// Gives up after two seconds, so that a device that runs it inside a call of the test fails the test and does
// not hang it.
class Gate {
 public:
  void Hold(CUstream stream);
  void Open() { open_ = true; }
  bool Passed() const { return passed_; }
  bool GaveUp() const { return gave_up_; }

 private:
  static void Wait(void* gate);
  std::atomic<bool> open_{false}, passed_{false}, gave_up_{false};
};

class Order : public Device {
 protected:
  void TearDown() override;  // opens every gate; fails the test if one gave up

  CUstream NewStream(unsigned flags = CU_STREAM_NON_BLOCKING);
  CUevent NewEvent(unsigned flags = CU_EVENT_DISABLE_TIMING);
  Gate& Held(CUstream stream);         // a new gate that holds the stream
  CUdeviceptr NewMemory(size_t size);  // of the device
  uint8_t* NewPinned(size_t size);     // zeros
  // A host function of `stream` that runs `function`.
  void Call(CUstream stream, std::function<void()> function);

  // Work of `stream` is unfinished, and is finished at last. The second asks until it is, for two seconds.
  static bool Unfinished(CUstream stream) { return CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY; }
  static bool Finishes(CUstream stream);

 private:
  std::list<Gate> gates_;
  std::list<std::function<void()>> functions_;
  std::vector<CUstream> streams_;
  std::vector<CUevent> events_;
  std::vector<CUdeviceptr> memory_;
  std::vector<void*> pinned_;
};

}  // namespace weir::conformance

#endif
