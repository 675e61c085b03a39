#include "tools/emulated_gpu/device/vmm.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/addresses.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/frames.h"
#include "tools/emulated_gpu/device/live_blocks.h"
#include "tools/emulated_gpu/device/memory.h"
#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"

namespace weir::emulated {
namespace {

struct Frame {
  long offset;  // in the memfd
  size_t size;
  int handles;  // references that the program holds
  int mappings;
  int device;
};
struct Mapping {
  size_t size;
  FrameHandle handle;
  int device;                                     // on which its bytes are
  std::array<Permission, kMostDevices> access{};  // by the device that touches it
  Permission most() const { return *std::max_element(access.begin(), access.end()); }
};

std::mutex mutex;  // guards everything below
auto& physical = *new PhysicalMemory;
auto& reservations = *new std::map<uintptr_t, size_t>;
auto& frames = *new std::unordered_map<FrameHandle, Frame>;
auto& mappings = *new std::map<uintptr_t, Mapping>;
FrameHandle last_handle = 0x1000;  // handles are never used twice

using MappingPosition = std::map<uintptr_t, Mapping>::iterator;

Status Misuse(Status status, const char* call, uintptr_t address, size_t size, const char* why) {
  Report("%s(0x%lx, %zu): %s", call, address, size, why);
  return status;
}

bool InsideOneReservation(uintptr_t address, size_t size) {
  auto reservation = reservations.upper_bound(address);
  if (reservation == reservations.begin()) return false;
  --reservation;
  return address + size <= reservation->first + reservation->second;
}

bool AnyMappingIn(uintptr_t address, size_t size) {
  auto mapping = mappings.lower_bound(address + size);
  if (mapping == mappings.begin()) return false;
  --mapping;
  return mapping->first + mapping->second.size > address;
}

// True when whole mappings cover the range without a hole; then [first, last) are they.
bool Tiles(uintptr_t address, size_t size, MappingPosition* first, MappingPosition* last) {
  *first = *last = mappings.find(address);
  uintptr_t at = address;
  while (at < address + size) {
    if (*last == mappings.end() || (*last)->first != at) return false;
    at += (*last)->second.size;
    ++*last;
  }
  return size > 0 && at == address + size;
}

void DropIfUnused(std::unordered_map<FrameHandle, Frame>::iterator frame) {
  if (frame->second.handles > 0 || frame->second.mappings > 0) return;
  PlaceRemoved(kFramePlaces + static_cast<Place>(frame->second.offset), frame->second.size);
  physical.Return(frame->second.offset, frame->second.size);
  ReturnDeviceBytes(PhysicalDevice(frame->second.device), frame->second.size);
  frames.erase(frame);
}

// What a call on `handles` handles takes: the driver does one at a time for the whole process.
void TakeMapperTime(double microseconds, size_t handles) {
  const Nanos time = static_cast<Nanos>(handles) * Micros(microseconds);
  Nanos done = 0;
  {
    std::lock_guard<std::mutex> lock(Order().mutex);
    done = RunForHostLocked(Engine::kMapper, time);
  }
  HostWaits(done - time, Wait::kMapper);
  ChargeHost(time, Busy::kMapping);
}
const Costs& TheCosts() { return Settings().profile->costs; }

size_t Count(MappingPosition first, MappingPosition last) {
  return static_cast<size_t>(std::distance(first, last));
}

// What this process may touch is what any device may. False when the system has no room for one more mapping.
bool Protect(MappingPosition first, MappingPosition last) {
  while (first != last) {
    const Permission access = first->second.most();
    const uintptr_t begin = first->first;
    uintptr_t end = begin;
    for (; first != last && first->second.most() == access; ++first) end = first->first + first->second.size;
    const int protection = access == Permission::kNone   ? PROT_NONE
                           : access == Permission::kRead ? PROT_READ
                                                         : PROT_READ | PROT_WRITE;
    if (mprotect(reinterpret_cast<void*>(begin), end - begin, protection) == 0) continue;
    Note("the system has no room for one more mapping (vm.max_map_count)");
    return false;
  }
  return true;
}

bool Multiple(size_t value) { return value != 0 && value % kGranularity == 0; }

}  // namespace

Status ReserveAddresses(uintptr_t* address, size_t size, size_t alignment, uintptr_t hint) {
  if (!Multiple(size) || (alignment & (alignment - 1)) != 0) {
    return Misuse(CUDA_ERROR_INVALID_VALUE, "cuMemAddressReserve", 0, size,
                  "size or alignment is not a multiple");
  }
  TakeMapperTime(TheCosts().vmm_reserve_us, 1);
  const uintptr_t found = TakeAddresses(size, alignment, hint);
  if (found == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  FindAllocator();
  std::lock_guard<std::mutex> lock(mutex);
  reservations[found] = size;
  *address = found;
  return CUDA_SUCCESS;
}

Status FreeReservation(uintptr_t address, size_t size) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto reservation = reservations.find(address);
    if (reservation == reservations.end() || reservation->second != size) {
      return Misuse(CUDA_ERROR_INVALID_VALUE, "cuMemAddressFree", address, size, "not a reservation");
    }
    if (AnyMappingIn(address, size)) {
      return Misuse(CUDA_ERROR_INVALID_VALUE, "cuMemAddressFree", address, size, "still has mappings");
    }
    reservations.erase(reservation);
  }
  ReturnAddresses(address, size);
  return CUDA_SUCCESS;
}

Status CreateFrame(FrameHandle* handle, size_t size, int device) {
  if (!Multiple(size)) {
    return Misuse(CUDA_ERROR_INVALID_VALUE, "cuMemCreate", 0, size,
                  "size is not a multiple of the granularity");
  }
  TakeMapperTime(TheCosts().vmm_create_us, 1);
  if (!TakeDeviceBytes(PhysicalDevice(device), size)) return CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard<std::mutex> lock(mutex);
  const long offset = physical.Take(size, Settings().poison);
  if (offset < 0) {
    ReturnDeviceBytes(PhysicalDevice(device), size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = ++last_handle;
  frames[*handle] = {offset, size, 1, 0, device};
  return CUDA_SUCCESS;
}

Status RetainFrame(uintptr_t mapped_address, FrameHandle* handle) {
  std::lock_guard<std::mutex> lock(mutex);
  auto mapping = mappings.upper_bound(mapped_address);
  if (mapping == mappings.begin()) return CUDA_ERROR_INVALID_VALUE;
  --mapping;
  if (mapped_address >= mapping->first + mapping->second.size) return CUDA_ERROR_INVALID_VALUE;
  *handle = mapping->second.handle;
  ++frames.at(*handle).handles;
  return CUDA_SUCCESS;
}

Status ReleaseFrame(FrameHandle handle) {
  std::lock_guard<std::mutex> lock(mutex);
  auto frame = frames.find(handle);
  if (frame == frames.end() || frame->second.handles == 0) {
    return Misuse(CUDA_ERROR_INVALID_VALUE, "cuMemRelease", handle, 0, "no such handle (released twice?)");
  }
  TakeMapperTime(TheCosts().vmm_release_us, 1);
  --frame->second.handles;
  DropIfUnused(frame);
  return CUDA_SUCCESS;
}

Status DescribeFrame(FrameHandle handle, size_t* size, int* device) {
  std::lock_guard<std::mutex> lock(mutex);
  auto frame = frames.find(handle);
  if (frame == frames.end() || frame->second.handles == 0) return CUDA_ERROR_INVALID_VALUE;
  *size = frame->second.size;
  *device = frame->second.device;
  return CUDA_SUCCESS;
}

Status Map(uintptr_t address, size_t size, size_t offset, FrameHandle handle) {
  std::lock_guard<std::mutex> lock(mutex);
  auto frame = frames.find(handle);
  const char* why = nullptr;
  if (frame == frames.end() || frame->second.handles == 0) {
    why = "no such handle";
  } else if (offset != 0) {
    why = "offset must be 0";
  } else if (!Multiple(size) || address % kGranularity != 0) {
    why = "address or size is not a multiple of the granularity";
  } else if (size > frame->second.size) {
    why = "larger than the handle";
  } else if (!InsideOneReservation(address, size)) {
    why = "not inside one reservation";
  } else if (AnyMappingIn(address, size)) {
    why = "something is mapped there already";
  }
  if (why != nullptr) return Misuse(CUDA_ERROR_INVALID_VALUE, "cuMemMap", address, size, why);
  TakeMapperTime(TheCosts().vmm_map_us, 1);
  // No access until SetAccess, as documented.
  if (mmap(reinterpret_cast<void*>(address), size, PROT_NONE, MAP_SHARED | MAP_FIXED, physical.fd(),
           frame->second.offset) == MAP_FAILED) {
    Note("the system has no room for one more mapping (vm.max_map_count)");
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  ++frame->second.mappings;
  mappings[address] = {size, handle, frame->second.device};
  RegionAdded(address, size, kFramePlaces + static_cast<Place>(frame->second.offset), /*host=*/false);
  return CUDA_SUCCESS;
}

Status Unmap(uintptr_t address, size_t size) {
  FinishUsers(address, size);
  std::lock_guard<std::mutex> lock(mutex);
  MappingPosition first, last;
  if (!Tiles(address, size, &first, &last)) {
    return Misuse(CUDA_ERROR_INVALID_VALUE, "cuMemUnmap", address, size,
                  "not exactly a range of whole mappings");
  }
  TakeMapperTime(TheCosts().vmm_unmap_us, Count(first, last));
  if (!MakeInaccessible(address, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  RegionsRemoved(address, size, "cuMemUnmap");
  for (auto mapping = first; mapping != last; ++mapping) {
    auto frame = frames.find(mapping->second.handle);
    --frame->second.mappings;
    DropIfUnused(frame);
  }
  mappings.erase(first, last);
  return CUDA_SUCCESS;
}

Status SetAccess(uintptr_t address, size_t size, int device, Permission access) {
  FinishUsers(address, size);
  std::lock_guard<std::mutex> lock(mutex);
  MappingPosition first, last;
  if (!Tiles(address, size, &first, &last)) {
    return Misuse(CUDA_ERROR_INVALID_VALUE, "cuMemSetAccess", address, size,
                  "not exactly a range of whole mappings");
  }
  TakeMapperTime(TheCosts().vmm_access_us, Count(first, last));
  const bool first_grant = std::all_of(first, last, [device](const auto& mapping) {
    return mapping.second.access[device] == Permission::kNone;
  });
  if (!first_grant) RegionsChange(address, size, "cuMemSetAccess");  // another device's work on it goes on
  for (auto mapping = first; mapping != last; ++mapping) mapping->second.access[device] = access;
  return Protect(first, last) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

Status GetAccess(uintptr_t address, int device, Permission* access) {
  std::lock_guard<std::mutex> lock(mutex);
  auto mapping = mappings.upper_bound(address);
  if (mapping == mappings.begin()) return CUDA_ERROR_INVALID_VALUE;
  --mapping;
  if (address >= mapping->first + mapping->second.size) return CUDA_ERROR_INVALID_VALUE;
  *access = mapping->second.access[device];
  return CUDA_SUCCESS;
}

bool LocateReservation(uintptr_t address, uintptr_t* begin, size_t* size) {
  std::lock_guard<std::mutex> lock(mutex);
  auto reservation = reservations.upper_bound(address);
  if (reservation == reservations.begin()) return false;
  --reservation;
  if (address >= reservation->first + reservation->second) return false;
  *begin = reservation->first;
  *size = reservation->second;
  return true;
}

bool LocateMapping(uintptr_t address, uintptr_t* begin, size_t* size, int* device) {
  std::lock_guard<std::mutex> lock(mutex);
  auto mapping = mappings.upper_bound(address);
  if (mapping == mappings.begin()) return false;
  --mapping;
  if (address >= mapping->first + mapping->second.size) return false;
  *begin = mapping->first;
  *size = mapping->second.size;
  *device = mapping->second.device;
  return true;
}

bool IsAccessible(uintptr_t address, size_t size, Permission least, int device, uintptr_t* hole) {
  std::lock_guard<std::mutex> lock(mutex);
  *hole = address;
  auto mapping = mappings.upper_bound(address);
  if (mapping == mappings.begin()) return false;
  for (--mapping; *hole < address + size; ++mapping) {
    if (mapping == mappings.end() || mapping->first > *hole) return false;
    const Permission access = device == kSomeDevice ? mapping->second.most() : mapping->second.access[device];
    if (access < least) return false;
    if (mapping->first + mapping->second.size <= *hole) return false;
    *hole = mapping->first + mapping->second.size;
  }
  return true;
}

size_t LiveFrames() {
  std::lock_guard<std::mutex> lock(mutex);
  return frames.size();
}

AddressFacts DescribeWithoutLock(uintptr_t address) {
  AddressFacts facts;
  auto reservation = reservations.upper_bound(address);
  if (reservation == reservations.begin()) return facts;
  --reservation;
  if (address >= reservation->first + reservation->second) return facts;
  facts.reservation = reservation->first;
  facts.reservation_size = reservation->second;
  auto mapping = mappings.upper_bound(address);
  const bool mapped =
      mapping != mappings.begin() && (--mapping, address < mapping->first + mapping->second.size);
  facts.state = mapped ? "mapped without access" : "reserved but not mapped";
  return facts;
}

}  // namespace weir::emulated
