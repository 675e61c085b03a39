// A device with a pager on a fake driver: tensors with known patterns, ops that touch them, and storages that
// notice whether what denies access to them also allows it again.
#ifndef WEIR_TESTS_OFFLOAD_PAGER_FIXTURE_H_
#define WEIR_TESTS_OFFLOAD_PAGER_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "offload/pager.h"
#include "policies/registry.h"
#include "tests/allocator/device_fixture.h"

namespace weir {

// Stands for torch's StorageImpl.
struct FakeStorage {
  std::atomic<int> held{0};
  std::atomic<bool> denied{false};
};

struct Tensor {
  DeviceAddr at;
  Bytes size;
  uint32_t pattern = 0;
  std::unique_ptr<FakeStorage> storage = std::make_unique<FakeStorage>();
};

// One op of one thread, from its start to its end.
class OpScope {
 public:
  OpScope(OpPins& op, const char* name) : op_(op) { op_.Enter(name); }
  ~OpScope() { op_.Leave(); }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

 private:
  OpPins& op_;
};

class PagerFixture : public DeviceFixture {
 public:
  PagerFixture(PageCount cap, PageCount ram_budget, std::unique_ptr<Policy> chosen = MakePolicy("lru"),
               fakes::FakeDriver::Config config = {})
      : DeviceFixture(cap, config),
        policy(std::move(chosen)),
        ram(driver, ram_budget.bytes()),
        pager(*device, ram, *policy, StorageHooks{&Retain, &Deny, &Allow}) {
    device->SetRoomMaker(&pager);
    device->SetStorageRelease(&Release);
  }
  ~PagerFixture() { driver.FinishEverything(); }

  // A new tensor that holds `pattern`, made by an op and then the input of another: it may leave.
  Tensor Make(Bytes size, uint32_t pattern, Lane lane = kStreamA) {
    Tensor tensor;
    tensor.size = size;
    tensor.pattern = pattern;
    {
      OpScope op(this->op, "make");
      absl::StatusOr<DeviceAddr> at = device->Allocate(size, lane, this->op);
      EXPECT_TRUE(at.ok()) << at.status();
      if (!at.ok()) return tensor;
      tensor.at = *at;
      Write(tensor.at, size, pattern, lane.stream);
    }
    Use(tensor, lane.stream);
    return tensor;
  }
  // An op that reads it and checks its bytes.
  void Use(const Tensor& tensor, Stream stream = kStreamA, const std::string& what = "use") {
    OpScope op(this->op, "use");
    absl::Status status = Touch({&tensor}, this->op, stream);
    EXPECT_TRUE(status.ok()) << what << ": " << status;
    if (status.ok()) Check(tensor.at, tensor.size, tensor.pattern, stream, what);
  }
  absl::Status Touch(std::vector<const Tensor*> tensors, OpPins& op, Stream stream = kStreamA) {
    return pager.Touch(Requests(tensors), op, stream);
  }
  static std::vector<TouchRequest> Requests(const std::vector<const Tensor*>& tensors) {
    std::vector<TouchRequest> requests;
    for (const Tensor* tensor : tensors) {
      requests.push_back(TouchRequest{tensor->at, tensor->storage.get(), /*evidence=*/true});
    }
    return requests;
  }
  void Drop(Tensor& tensor) { Free(tensor.at); }

  Residency state(const Tensor& tensor) {
    LockHolder lock(&device->mutex());
    return device->FindBlockLocked(tensor.at)->extent->state;
  }
  // Evicts the tensor by allocating until it is gone (as a victim of the policy), then frees that.
  void EvictByPressure(const Tensor& tensor, Bytes pressure, Stream stream = kStreamA) {
    DeviceAddr at = Allocate(pressure, stream);
    EXPECT_EQ(state(tensor), Residency::kInRam);
    Free(at);
  }

  std::unique_ptr<Policy> policy;
  PinnedStore ram;
  Pager pager;
  OpPins op;  // of the test's main thread

 private:
  static void Retain(void* storage) { static_cast<FakeStorage*>(storage)->held.fetch_add(1); }
  static void Release(void* storage) { static_cast<FakeStorage*>(storage)->held.fetch_sub(1); }
  static void Deny(void* storage, const void* base, const char* text) {
    EXPECT_FALSE(static_cast<FakeStorage*>(storage)->denied.exchange(true)) << "denied twice";
    EXPECT_NE(base, nullptr);
    EXPECT_NE(text, nullptr);
  }
  static void Allow(void* storage) {
    EXPECT_TRUE(static_cast<FakeStorage*>(storage)->denied.exchange(false))
        << "allowed without having been denied";
  }
};

}  // namespace weir

#endif  // WEIR_TESTS_OFFLOAD_PAGER_FIXTURE_H_
