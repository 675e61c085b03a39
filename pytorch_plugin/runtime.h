// The running Weir of this process: options, driver, and one allocator, RAM tier share and pager per device. Torch-free.
// Made once by weir_start (no driver call) and weir_init; never destroyed: tensors are freed during process exit.
#ifndef WEIR_PYTORCH_PLUGIN_RUNTIME_H_
#define WEIR_PYTORCH_PLUGIN_RUNTIME_H_

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "allocator/base/lock_ranks.h"
#include "allocator/base/options.h"
#include "allocator/base/torch_conf.h"
#include "allocator/device_allocator.h"
#include "offload/pager.h"
#include "offload/pinned_store.h"
#include "offload/ram_budget.h"
#include "policies/policy.h"
#include "pytorch_plugin/core_abi.h"

namespace weir {

// Everything Weir has for one device.
struct Device {
  DeviceIndex index;
  Bytes card_total;
  Bytes first_cap;  // Bytes::Max(): none
  std::unique_ptr<DeviceAllocator> allocator;
  std::unique_ptr<PinnedStore> ram;
  std::unique_ptr<Pager> pager;
};

class Runtime {
 public:
  static constexpr int kMaxDevices = 64;

  static Runtime& Get();

  // Reads the options. INVALID_ARGUMENT: an option is wrong. Later calls return the first result.
  absl::Status Start(const WeirHost& host);
  // Resolves the driver. NOT_FOUND, FAILED_PRECONDITION: Weir cannot work here.
  absl::Status Init(int device_count);

  const Options& options() const { return options_; }
  const WeirHost& host() const { return host_; }
  // False only with WEIR_VRAM=off for every device.
  bool HasCap() const;

  // The device, set up at its first use (needs the context). Null and `status`: why not.
  Device* GetDevice(int index, absl::Status* status);
  // The device if it has been set up, else null. Never waits.
  Device* Find(int index) const {
    return index >= 0 && index < kMaxDevices
               ? devices_[static_cast<size_t>(index)].load(std::memory_order_acquire)
               : nullptr;
  }
  // The device whose addresses contain `address`, else null.
  Device* Owner(const void* address) const;

  void AddBlindThread(int change);
  void AddAddressReader(int change);
  // R6; see core_abi.h.
  bool EndWatch(bool if_quiet);
  void BeginWatch();
  void ForgetEvidence();
  uint64_t watches() const { return watches_.load(std::memory_order_relaxed); }
  uint64_t ops_observed() const { return ops_.load(std::memory_order_relaxed); }
  void CountOp() { ops_.fetch_add(1, std::memory_order_relaxed); }
  void CountOom() { ooms_.fetch_add(1, std::memory_order_relaxed); }
  // The exit line, once.
  void LogExit();

 private:
  Runtime() = default;
  absl::StatusOr<std::unique_ptr<Device>> SetUp(DeviceIndex index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // WEIR_VRAM, PYTORCH_ALLOC_CONF and the card.
  Bytes CapOf(DeviceIndex index, const DeviceMemory& memory) const;
  // Made at the first device.
  absl::Status MakeRamBudget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // WEIR_TRACE; a trace that cannot be written is a line on the log.
  void StartTrace();

  WeirHost host_{};
  Options options_;
  TorchConf torch_conf_;
  absl::Status started_;
  std::unique_ptr<Policy> policy_;
  Driver* driver_ = nullptr;
  int device_count_ = 0;
  RankedMutex mutex_{LockRank::kInstall};
  bool has_started_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<RamBudget*> ram_{nullptr};  // of all devices; never destroyed
  std::array<std::atomic<Device*>, kMaxDevices> devices_{};
  std::atomic<int> highest_device_{-1};
  std::atomic<int> blind_threads_{0};
  std::atomic<int> address_readers_{0};
  bool watched_ ABSL_GUARDED_BY(mutex_) = true;
  std::atomic<uint64_t> watches_{0};  // after the first one
  std::atomic<uint64_t> ops_{0};
  std::atomic<uint64_t> ooms_{0};
  std::atomic<bool> exited_{false};
};

// The cap of a device: WEIR_VRAM applied to what the driver said at CUDA start. Bytes::Max() is no cap.
Bytes CapFor(const VramLimit& limit, const DeviceMemory& at_start);

// torch's own sentence for an allocation that failed on `device`, followed by `reason` on a line of its own.
std::string OutOfMemoryText(Device& device, Bytes requested, const std::string& reason);

}  // namespace weir

#endif  // WEIR_PYTORCH_PLUGIN_RUNTIME_H_
