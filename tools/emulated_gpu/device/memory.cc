#include "tools/emulated_gpu/device/memory.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/addresses.h"
#include "tools/emulated_gpu/device/capture.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/host_ram.h"
#include "tools/emulated_gpu/device/known_bytes.h"
#include "tools/emulated_gpu/device/live_blocks.h"
#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/pools.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/streams.h"
#include "tools/emulated_gpu/device/vmm.h"

namespace weir::emulated {
namespace {

struct Allocation {
  size_t size;
  int device;
  const Pool* pool = nullptr;  // whose block it is, else null
};
struct HostRange {
  size_t size;
  bool registered;
  int device;
};

std::mutex mutex;
auto& allocations =
    *new std::map<uintptr_t, Allocation>;  // guarded by mutex: cudaMalloc ranges, blocks of pools
auto& host_ranges = *new std::map<uintptr_t, HostRange>;  // guarded by mutex
// guarded by mutex; by host address and device
auto& variables = *new std::map<std::pair<const void*, int>, std::pair<uintptr_t, size_t>>;

constexpr size_t kPage = 4096;
size_t AlignUp(size_t value, size_t alignment) { return (value + alignment - 1) / alignment * alignment; }

// Addresses of an allocation: one granule more than it needs, so that one past its end is never inside another.
size_t RangeBytes(size_t size) { return AlignUp(size, kGranularity) + kGranularity; }

// Real memory over the range. Untouched pages cost nothing.
bool MakeUsable(uintptr_t address, size_t size) {
  return mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void ChargePinning(size_t size) {
  ChargeHost(Micros(Settings().profile->costs.pin_us_per_mib * static_cast<double>(size) / 0x1p20),
             Busy::kMemory);
}

bool Reaches(int device, int owner) {
  return device == kSomeDevice || device == owner || PeerEnabled(device, owner);
}

template <typename Map>
typename Map::const_iterator Containing(const Map& ranges, uintptr_t address) {
  auto range = ranges.upper_bound(address);
  return range == ranges.begin() ? ranges.end() : std::prev(range);
}

// Memory of cudaMalloc follows the peers that are enabled, that of a pool has its own list.
bool Reaches(int device, const Allocation& allocation) {
  if (allocation.pool == nullptr) return Reaches(device, allocation.device);
  return device == kSomeDevice || PoolReaches(*allocation.pool, device);
}

}  // namespace

uintptr_t NewUsableRange(size_t size) {
  const uintptr_t address = TakeAddresses(RangeBytes(size), kGranularity, 0);
  if (address == 0) return 0;
  if (MakeUsable(address, AlignUp(size, kPage))) return address;
  ReturnAddresses(address, RangeBytes(size));
  return 0;
}

void ReturnUsableRange(uintptr_t begin, size_t size) { ReturnAddresses(begin, RangeBytes(size)); }

void BlockAdded(uintptr_t begin, size_t size, int device, const Pool* pool) {
  std::lock_guard<std::mutex> lock(mutex);
  allocations[begin] = {size, device, pool};
}

void BlockRemoved(uintptr_t begin) {
  std::lock_guard<std::mutex> lock(mutex);
  allocations.erase(begin);
}

Status AllocateDevice(uintptr_t* address, size_t size) {
  *address = 0;
  if (size == 0) return CUDA_SUCCESS;
  if (const Status refused = CheckUnsafeCall(); refused != CUDA_SUCCESS) return refused;
  const int device = CurrentDevice();
  const size_t held = AlignUp(size, 512);  // cudaMalloc's alignment; CUDA C++ programming guide
  ChargeHost(Micros(Settings().profile->costs.malloc_us), Busy::kMemory);
  if (!TakeDeviceBytes(PhysicalDevice(device), held)) return CUDA_ERROR_OUT_OF_MEMORY;
  const uintptr_t found = NewUsableRange(size);
  if (found == 0) {
    ReturnDeviceBytes(PhysicalDevice(device), held);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (Settings().poison) std::memset(reinterpret_cast<void*>(found), 0xCB, size);
  std::lock_guard<std::mutex> lock(mutex);
  allocations[found] = {size, device, nullptr};
  RegionAdded(found, size, found, /*host=*/false);
  *address = found;
  return CUDA_SUCCESS;
}

Status FreeDevice(uintptr_t address) {
  if (address == 0) return CUDA_SUCCESS;
  if (const Status refused = CheckUnsafeCall(); refused != CUDA_SUCCESS) return refused;
  ChargeHost(Micros(Settings().profile->costs.free_us), Busy::kMemory);
  const Placement placement = Locate(address);
  // implicit, as documented for memory that is not stream-ordered
  SynchronizeDevice(placement.where == Where::kDevice ? placement.device : CurrentDevice(), Wait::kFree);
  Allocation freed{};
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto allocation = allocations.find(address);
    if (allocation != allocations.end()) {
      freed = allocation->second;
      if (freed.pool == nullptr) allocations.erase(allocation);
    }
  }
  if (freed.pool != nullptr) {
    FreeToPool(address);
    return CUDA_SUCCESS;
  }
  if (freed.size == 0) {
    Report("free of device pointer 0x%lx, which is not allocated (freed twice, or never made)", address);
    return CUDA_ERROR_INVALID_VALUE;
  }
  RegionsRemoved(address, freed.size, "cuMemFree");
  ReturnAddresses(address, RangeBytes(freed.size));
  ReturnDeviceBytes(PhysicalDevice(freed.device), AlignUp(freed.size, 512));
  return CUDA_SUCCESS;
}

Status AllocatePinned(void** address, size_t size) {
  *address = nullptr;
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const Status refused = CheckUnsafeCall(); refused != CUDA_SUCCESS) return refused;
  if (!PinHostBytes(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  ChargePinning(size);
  void* found = mmap(nullptr, AlignUp(size, kPage), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) {
    UnpinHostBytes(size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  std::lock_guard<std::mutex> lock(mutex);
  const auto begin = reinterpret_cast<uintptr_t>(found);
  host_ranges[begin] = {size, false, CurrentDevice()};
  RegionAdded(begin, size, begin, /*host=*/true);
  *address = found;
  return CUDA_SUCCESS;
}

Status FreePinned(void* address) {
  if (address == nullptr) return CUDA_SUCCESS;
  if (const Status refused = CheckUnsafeCall(); refused != CUDA_SUCCESS) return refused;
  FinishUsers(reinterpret_cast<uintptr_t>(address), 1);
  size_t size = 0;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto range = host_ranges.find(reinterpret_cast<uintptr_t>(address));
    if (range != host_ranges.end() && !range->second.registered) {
      size = range->second.size;
      host_ranges.erase(range);
    }
  }
  if (size == 0) {
    Report("free of pinned host pointer %p, which is not allocated (freed twice, or never made)", address);
    return CUDA_ERROR_INVALID_VALUE;
  }
  RegionsRemoved(reinterpret_cast<uintptr_t>(address), size, "cuMemFreeHost");
  ForgetPinned(reinterpret_cast<uintptr_t>(address), size);
  munmap(address, AlignUp(size, kPage));
  UnpinHostBytes(size);
  return CUDA_SUCCESS;
}

Status RegisterHost(void* address, size_t size) {
  if (address == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const Status refused = CheckUnsafeCall(); refused != CUDA_SUCCESS) return refused;
  ChargePinning(size);
  const auto begin = reinterpret_cast<uintptr_t>(address);
  std::lock_guard<std::mutex> lock(mutex);
  const auto overlapping = Containing(host_ranges, begin + size - 1);
  if (overlapping != host_ranges.end() && overlapping->first + overlapping->second.size > begin) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  if (!PinHostBytes(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  host_ranges[begin] = {size, true, CurrentDevice()};
  RegionAdded(begin, size, begin, /*host=*/true);
  return CUDA_SUCCESS;
}

Status UnregisterHost(void* address) {
  FinishUsers(reinterpret_cast<uintptr_t>(address), 1);
  std::lock_guard<std::mutex> lock(mutex);
  auto range = host_ranges.find(reinterpret_cast<uintptr_t>(address));
  if (range == host_ranges.end() || !range->second.registered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  RegionsRemoved(range->first, range->second.size, "cuMemHostUnregister");
  ForgetPinned(range->first, range->second.size);
  UnpinHostBytes(range->second.size);
  host_ranges.erase(range);
  return CUDA_SUCCESS;
}

Placement Locate(uintptr_t address) {
  if (InDeviceWindow(address)) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      const auto range = Containing(allocations, address);
      if (range != allocations.end() && address < range->first + range->second.size) {
        return {Where::kDevice, range->first, range->second.size, range->second.device};
      }
    }
    Placement mapping;
    if (LocateMapping(address, &mapping.begin, &mapping.size, &mapping.device))
      mapping.where = Where::kDevice;
    return mapping;
  }
  std::lock_guard<std::mutex> lock(mutex);
  const auto range = Containing(host_ranges, address);
  if (range == host_ranges.end() || address >= range->first + range->second.size) return {};
  return {range->second.registered ? Where::kRegistered : Where::kPinned, range->first, range->second.size,
          range->second.device};
}

bool IsTouchable(uintptr_t address, int device, Placement* range) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    const auto allocation = Containing(allocations, address);
    if (allocation != allocations.end() && address < allocation->first + allocation->second.size) {
      *range = {Where::kDevice, allocation->first, allocation->second.size, allocation->second.device};
      return Reaches(device, allocation->second);
    }
  }
  uintptr_t hole = 0;
  range->where = Where::kDevice;
  return IsAccessible(address, 1, Permission::kRead, device, &hole) &&
         LocateMapping(address, &range->begin, &range->size, &range->device);
}

uintptr_t VariableAddress(const void* host, size_t* size) {
  std::lock_guard<std::mutex> lock(mutex);
  const int device = CurrentDevice();
  auto known = variables.find({host, device});
  if (known == variables.end()) {
    using Registered = const char* (*)(const void*, size_t*, const void**);
    static const auto registered =
        reinterpret_cast<Registered>(dlsym(RTLD_DEFAULT, "weir_emulated_registered_name"));
    size_t bytes = 0;
    if (registered == nullptr || registered(host, &bytes, nullptr) == nullptr || bytes == 0) return 0;
    const uintptr_t address = NewUsableRange(bytes);
    if (address == 0) return 0;
    allocations[address] = {bytes, device, nullptr};
    RegionAdded(address, bytes, address, /*host=*/false);
    known = variables.emplace(std::make_pair(host, device), std::make_pair(address, bytes)).first;
  }
  *size = known->second.second;
  return known->second.first;
}

Status CheckTouch(uintptr_t address, size_t size, const char* what, Touch touch, int device) {
  if (size == 0 || !InDeviceWindow(address)) return CUDA_SUCCESS;
  int owner = -1;
  {
    std::lock_guard<std::mutex> lock(mutex);
    const auto range = Containing(allocations, address);
    if (range != allocations.end() && address + size <= range->first + range->second.size) {
      if (Reaches(device, range->second)) return CUDA_SUCCESS;
      owner = range->second.device;
    }
  }
  if (owner >= 0) {
    Report("%s on device %d touches memory of device %d without peer access: 0x%lx + %zu", what, device,
           owner, address, size);
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  uintptr_t hole = 0;
  const Permission least = touch == Touch::kRead ? Permission::kRead : Permission::kReadWrite;
  if (IsAccessible(address, size, least, device, &hole)) {
    // A card does not mind: the call goes on.
    if (Settings().checks && LifeOfRange(address, size) == Life::kDead) {
      const char* op = CurrentOp();
      Report(
          "%s touches device memory that no live block holds: 0x%lx + %zu, freed or past a block's end, op "
          "%s",
          what, address, size, *op == '\0' ? "unknown" : op);
    }
    return CUDA_SUCCESS;
  }
  Report("%s touches device memory that is not mapped: 0x%lx + %zu, first hole at 0x%lx", what, address, size,
         hole);
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

}  // namespace weir::emulated
