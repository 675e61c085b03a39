#include "pytorch_plugin/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "allocator/base/log.h"
#include "allocator/base/nvtx_range.h"
#include "allocator/base/size_text.h"
#include "allocator/cuda/emulated_clock.h"
#include "allocator/cuda/emulated_host.h"
#include "allocator/wait_scope.h"
#include "offload/host_memory.h"
#include "policies/registry.h"
#include "trace/recorder.h"

namespace weir {

Runtime& Runtime::Get() {
  static Runtime* runtime = new Runtime;
  return *runtime;
}

absl::Status Runtime::Start(const WeirHost& host) {
  LockHolder lock(&mutex_);
  if (has_started_) return started_;
  has_started_ = true;
  // The order of locks is that of their ranks. Debian's Abseil also looks for cycles, at every lock and under one
  // spinlock of the process.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  host_ = host;
  absl::StatusOr<Options> options = OptionsFromEnvironment();
  std::vector<UnknownOption> unknown = FindUnknownOptions(ReadEnvironment());
  if (!options.ok()) return started_ = options.status();
  options_ = *options;
  absl::Status log = StartLog(options_.log, RankText());
  if (!log.ok()) return started_ = log;
  for (const UnknownOption& option : unknown) {
    if (options_.strict) return started_ = absl::InvalidArgumentError(option.Message());
    Log(LogLevel::kWarn, option.Message());
  }
  torch_conf_ = ReadTorchConf(TorchConfText());
  if (!torch_conf_.without_effect.empty()) {
    Log(LogLevel::kWarn, "PYTORCH_ALLOC_CONF: ", absl::StrJoin(torch_conf_.without_effect, ", "),
        torch_conf_.without_effect.size() == 1 ? " has" : " have", " no effect on Weir's blocks");
  }
  policy_ = MakePolicy(options_.policy);
  if (policy_ == nullptr)
    return started_ = absl::InvalidArgumentError(absl::StrCat("unknown WEIR_POLICY=", options_.policy));
  WaitScope::SetHooks(WaitHooks{host.wait_begin, host.wait_end});
  return started_;
}

absl::Status Runtime::Init(int device_count) {
  LockHolder lock(&mutex_);
  if (driver_ != nullptr) return absl::OkStatus();
  absl::StatusOr<Driver*> driver = OpenDriver();
  if (!driver.ok()) return driver.status();
  for (int i = 0; i < std::min(device_count, kMaxDevices); ++i) {
    absl::StatusOr<bool> vmm = (*driver)->SupportsVirtualMemory(DeviceIndex{i});
    if (!vmm.ok()) return vmm.status();
    if (!*vmm)
      return absl::FailedPreconditionError(absl::StrCat("device ", i, " has no virtual memory management"));
  }
  StartNvtx(options_.nvtx);
  StartTrace();
  driver_ = *driver;
  device_count_ = device_count;
  return absl::OkStatus();
}

void Runtime::StartTrace() {
  if (options_.trace.empty()) return;
  char host[256] = "localhost";
  if (gethostname(host, sizeof host) != 0) host[0] = '\0';
  host[sizeof host - 1] = '\0';
  const std::string rank = RankText();
  const EmulatedNow emulated = EmulatedClock();
  const trace::Clock clock =
      emulated == nullptr ? trace::MachineClock() : trace::Clock{trace::ClockKind::kVirtual, emulated};
  const absl::Status status = trace::Start(ExpandLogFile(options_.trace, getpid(), host, rank), rank, clock);
  if (!status.ok()) Log(LogLevel::kWarn, "WEIR_TRACE: ", status.message(), "; the job runs without a trace");
}

bool Runtime::HasCap() const {
  auto capped = [](const VramLimit& limit) { return limit.kind != VramLimit::Kind::kOff; };
  if (capped(options_.vram.every_device)) return true;
  return std::any_of(options_.vram.by_device.begin(), options_.vram.by_device.end(),
                     [&](const auto& entry) { return capped(entry.second); });
}

Bytes CapFor(const VramLimit& limit, const DeviceMemory& at_start) {
  Bytes outside = at_start.total - std::min(at_start.free, at_start.total);
  switch (limit.kind) {
    case VramLimit::Kind::kOff:
      return Bytes::Max();
    case VramLimit::Kind::kBytes:
      return limit.bytes;
    case VramLimit::Kind::kPercent: {
      Bytes share(static_cast<uint64_t>(static_cast<double>(at_start.total.count()) * limit.percent / 100));
      return SaturatingSubtract(share, outside);
    }
    case VramLimit::Kind::kAuto:
      break;
  }
  // For context growth and library workspaces: 3 %, at least 512 MiB, but never more than an eighth of a small card.
  Bytes reserve = std::min(std::max(at_start.total / 33, MiB(512)), at_start.total / 8);
  return SaturatingSubtract(at_start.total - outside, reserve);
}

Bytes Runtime::CapOf(DeviceIndex index, const DeviceMemory& memory) const {
  Bytes cap = CapFor(options_.vram.ForDevice(index.value), memory);
  if (cap > memory.total && cap != Bytes::Max()) {
    Log(LogLevel::kWarn, "device ", index.value, ": WEIR_VRAM=", FormatBytes(cap),
        " is more than the card has; the cap is ", FormatBytes(memory.total.RoundedDownTo(kPageBytes)));
    cap = memory.total.RoundedDownTo(kPageBytes);
  }
  if (torch_conf_.fraction >= 1) return cap;
  const Bytes share(static_cast<uint64_t>(static_cast<double>(memory.total.count()) * torch_conf_.fraction));
  if (share < cap) {
    Log(LogLevel::kInfo, "device ", index.value,
        ": per_process_memory_fraction in PYTORCH_ALLOC_CONF is the cap, ", FormatBytes(share));
  }
  return std::min(cap, share);
}

absl::Status Runtime::MakeRamBudget() {
  if (ram_.load() != nullptr) return absl::OkStatus();
  const Bytes emulated = EmulatedHostRam();
  RamBudget::Config config{.local_ranks = LocalRanks(), .several_stores = device_count_ > 1};
  // An emulated host is that of one `weir run`.
  const std::string scope =
      emulated == Bytes() ? "" : EnvironmentText("WEIR_EMULATED_SHARED").value_or("alone");
  if (options_.ram.bytes.has_value()) {
    config.most = *options_.ram.bytes;
    if (emulated == Bytes()) config.host = [] { return AvailableHostMemory(); };
    ram_.store(options_.ram.per_node ? ShareRam(config, scope).release() : new RamBudget(config));
    return absl::OkStatus();
  }
  HostMemory memory{emulated, "the profile"};
  if (emulated == Bytes()) {
    absl::StatusOr<HostMemory> real = AvailableHostMemory();
    if (!real.ok()) return real.status();
    memory = *std::move(real);
    config.host = [] { return AvailableHostMemory(); };
  }
  ram_.store(ShareDefaultRam(config, memory.available, scope).release());
  Log(LogLevel::kInfo, "WEIR_RAM=auto: half of ", FormatBytes(memory.available), " available (",
      memory.limited_by, "), at present ", FormatBytes(ram_.load()->limit()), " for this process");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Device>> Runtime::SetUp(DeviceIndex index) {
  absl::StatusOr<DeviceMemory> memory = driver_->MemoryInfo(index);
  if (!memory.ok()) return memory.status();
  absl::Status ram = MakeRamBudget();
  if (!ram.ok()) return ram;
  const Bytes cap = CapOf(index, *memory);
  if (cap < kPageBytes) {
    return absl::InvalidArgumentError(absl::StrCat("WEIR_VRAM leaves ", FormatBytes(cap), " of device ",
                                                   index.value, ", less than one page of ",
                                                   FormatBytes(kPageBytes)));
  }
  auto device = std::make_unique<Device>();
  device->index = index;
  device->card_total = memory->total;
  device->first_cap = cap;
  // Evicted blocks keep their addresses: room for VRAM and tiers many times over.
  Bytes addresses(std::bit_ceil(memory->total.count()) * 16);
  auto allocator = DeviceAllocator::Create(*driver_, DeviceAllocator::Config{index, cap, addresses});
  if (!allocator.ok()) return allocator.status();
  device->allocator = *std::move(allocator);
  device->ram = std::make_unique<PinnedStore>(*driver_, *ram_.load());
  device->pager = std::make_unique<Pager>(
      *device->allocator, *device->ram, *policy_,
      StorageHooks{host_.storage_retain, host_.storage_deny, host_.storage_allow, host_.eviction_veto});
  device->pager->AddBlindThread(blind_threads_.load());
  device->pager->AddAddressReader(address_readers_.load());
  if (!watched_) device->pager->TryEndWatch(/*if_quiet=*/false);  // there is nothing on it
  device->allocator->SetRoomMaker(device->pager.get());
  device->allocator->SetStorageRelease(host_.storage_release);
  Log(LogLevel::kInfo, "device ", index.value, ": cap ", cap == Bytes::Max() ? "none" : FormatBytes(cap),
      ", RAM tier up to ", FormatBytes(device->ram->budget()), ", policy ", std::string(policy_->name()));
  return device;
}

Device* Runtime::GetDevice(int index, absl::Status* status) {
  Device* device = Find(index);
  if (device != nullptr) return device;
  LockHolder lock(&mutex_);
  device = Find(index);
  if (device != nullptr) return device;
  if (driver_ == nullptr || index < 0 || index >= std::min(device_count_, kMaxDevices)) {
    *status = absl::FailedPreconditionError(absl::StrCat("device ", index, " is not initialised"));
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<Device>> made = SetUp(DeviceIndex{index});
  if (!made.ok()) {
    *status = made.status();
    return nullptr;
  }
  device = made->release();
  devices_[static_cast<size_t>(index)].store(device, std::memory_order_release);
  highest_device_.store(std::max(highest_device_.load(), index));
  return device;
}

Device* Runtime::Owner(const void* address) const {
  for (int i = 0; i <= highest_device_.load(std::memory_order_acquire); ++i) {
    Device* device = Find(i);
    if (device != nullptr && device->allocator->Contains(DeviceAddr::Of(address))) return device;
  }
  return nullptr;
}

void Runtime::AddBlindThread(int change) {
  blind_threads_.fetch_add(change);
  for (int i = 0; i <= highest_device_.load(); ++i) {
    if (Device* device = Find(i)) device->pager->AddBlindThread(change);
  }
}

void Runtime::AddAddressReader(int change) {
  // An end without a beginning (it began before Weir was there) changes nothing.
  if (address_readers_.fetch_add(change) + change < 0) {
    address_readers_.store(0);
    return;
  }
  for (int i = 0; i <= highest_device_.load(); ++i) {
    if (Device* device = Find(i)) device->pager->AddAddressReader(change);
  }
}

bool Runtime::EndWatch(bool if_quiet) {
  if (options_.watch_always || blind_threads_.load() > 0) return false;
  int count = 0;
  {
    LockHolder lock(&mutex_);
    count = highest_device_.load() + 1;
    for (int i = 0; i < count; ++i) {
      if (Device* device = Find(i); device == nullptr || device->pager->TryEndWatch(if_quiet)) continue;
      while (i-- > 0) {
        if (Device* before = Find(i)) before->pager->KeepWatch();
      }
      return false;
    }
    watched_ = false;
  }
  for (int i = 0; i < count; ++i) {
    if (Device* device = Find(i)) device->pager->Trim();
  }
  return true;
}

void Runtime::BeginWatch() {
  LockHolder lock(&mutex_);
  watched_ = true;
  watches_.fetch_add(1, std::memory_order_relaxed);
  for (int i = 0; i <= highest_device_.load(); ++i) {
    if (Device* device = Find(i)) device->pager->BeginWatch();
  }
}

void Runtime::ForgetEvidence() {
  for (int i = 0; i <= highest_device_.load(); ++i) {
    if (Device* device = Find(i)) device->pager->ForgetEvidence();
  }
}

void Runtime::LogExit() {
  if (exited_.exchange(true)) return;
  if (RamBudget* ram = ram_.load()) ram->Leave();
  if (!LogEnabled(LogLevel::kInfo)) return;
  for (int i = 0; i <= highest_device_.load(); ++i) {
    Device* device = Find(i);
    if (device == nullptr) continue;
    DeviceAllocator& allocator = *device->allocator;
    DeviceCounters counters = allocator.Counters();
    PagerCounters pager = device->pager->Counters();
    Log(LogLevel::kInfo, "exit device=", i,
        " cap=", allocator.HasCap() ? absl::StrCat(allocator.cap().count()) : "off",
        " peak_resident=", allocator.frames().peak_held().bytes().count(),
        " floor=", allocator.PeakFloor().count(), " peak_logical=", counters.bytes[kAllPools].peak,
        " evictions=", pager.evictions, " evicted_bytes=", pager.evicted_bytes.count(),
        " fetches=", pager.fetches, " fetched_bytes=", pager.fetched_bytes.count(),
        " stalls=", WaitScope::count(), " ops_observed=", ops_.load(),
        " threads_started=", trace::ThreadsStarted(), " copies=", pager.copies, " watches=", watches(),
        " driver_calls_steady=", allocator.SteadyDriverCalls(),
        " peak_frames=", allocator.frames().peak_held().bytes().count(),
        " peak_requested=", counters.requested[kAllPools].peak,
        " peak_ram=", device->ram->peak_used().count(), " out_of_memory=", ooms_.load());
  }
}

}  // namespace weir
