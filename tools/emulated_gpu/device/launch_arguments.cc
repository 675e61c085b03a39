#include "tools/emulated_gpu/device/launch_arguments.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tools/emulated_gpu/device/addresses.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/live_blocks.h"
#include "tools/emulated_gpu/device/memory.h"
#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/vmm.h"

namespace weir::emulated {
namespace {

struct Suspect {
  uintptr_t address;
  size_t parameter, offset;  // bytes, in the parameter
  bool mapped;               // but in no live block
};

struct Found {
  std::vector<uintptr_t> pointers;
  std::vector<Suspect> suspects;
};
thread_local Found found;  // keeps its room, so that a launch allocates nothing

void Look(uintptr_t word, size_t parameter, size_t offset, bool certain) {
  if (!WasEverTaken(word) || !(certain || InTensorOfOp(word))) return;
  Placement range;
  if (IsTouchable(word, CurrentDevice(), &range)) {
    found.pointers.push_back(word);
    // A leftover may lie in what a tensor of the op was before the op resized it.
    const Life life = certain ? LifeOfPointer(word) : Life::kNotAsked;
    if (life == Life::kDead || life == Life::kEnd) found.suspects.push_back({word, parameter, offset, true});
  } else {
    found.suspects.push_back({word, parameter, offset, false});
  }
}

template <typename Entry>
size_t LargestEntry(const char* table, size_t count) {
  Entry most = 0;
  for (size_t i = 0; i < count; ++i) {
    Entry entry;
    std::memcpy(&entry, table + i * sizeof entry, sizeof entry);
    most = std::max(most, entry);
  }
  return most;
}

size_t FilledCount(const ArgumentWords& words, const char* argument, size_t size, unsigned grid_x,
                   unsigned grid_y) {
  if (words.filled == ArgumentWords::Filled::kGridX) return std::min<size_t>(words.count, grid_x);
  if (words.filled == ArgumentWords::Filled::kGridY) return std::min<size_t>(words.count, grid_y);
  if (words.filled != ArgumentWords::Filled::kByBlock) return words.count;
  const char* table = argument + words.table_offset;
  const size_t blocks = std::min<size_t>(grid_x, (size - words.table_offset) / words.table_entry);
  const size_t largest =
      words.table_entry == 1 ? LargestEntry<uint8_t>(table, blocks) : LargestEntry<uint16_t>(table, blocks);
  return std::min<size_t>(words.count, largest + 1);
}

void Scan(const ArgumentWords& words, const char* argument, size_t filled) {
  const bool certain = words.filled != ArgumentWords::Filled::kPerhaps;
  for (size_t i = 0; i < filled; ++i) {
    uintptr_t word;
    const size_t offset = words.offset + i * sizeof word;
    std::memcpy(&word, argument + offset, sizeof word);
    Look(word, words.parameter, offset, certain);
  }
}

// One past the last byte of a live block of which the launch has another pointer: the end of a range that begins there.
bool IsEndOfBlock(uintptr_t address) {
  return LifeOfPointer(address) == Life::kEnd &&
         std::any_of(found.pointers.begin(), found.pointers.end(), [address](uintptr_t begin) {
           return begin < address && LifeOfRange(begin, address - begin) == Life::kAlive;
         });
}

// One past the end of an allocation. Between mappings there is no gap that would tell it from the begin of the next.
bool IsEndOfAllocation(uintptr_t address) {
  Placement range;
  uintptr_t begin = 0;
  size_t size = 0;
  int device = 0;
  return IsTouchable(address - 1, CurrentDevice(), &range) &&
         !LocateMapping(address - 1, &begin, &size, &device);
}

const char* StateOf(uintptr_t address) {
  const Placement placement = Locate(address);
  const bool of_peer = placement.where == Where::kDevice && placement.device != CurrentDevice();
  return of_peer ? "another device's, without peer access" : DescribeWithoutLock(address).state;
}

void ReportSuspect(const Kernel& kernel, const Suspect& suspect) {
  const char* state = suspect.mapped ? "in no live block" : StateOf(suspect.address);
  const char* op = CurrentOp();
  Report("launch with a pointer to device memory that is %s: 0x%lx, argument %zu, byte %zu, op %s, kernel %s",
         state, suspect.address, suspect.parameter, suspect.offset, *op == '\0' ? "unknown" : op,
         kernel.name.c_str());
}

void NoteUnchecked(const Kernel& kernel) {
  Counted().unchecked_launches.fetch_add(1, std::memory_order_relaxed);
  static std::mutex mutex;
  static auto* told = new std::set<std::string>;
  std::lock_guard<std::mutex> lock(mutex);
  if (!told->insert(kernel.unknown).second) return;
  Note("arguments of kernel %s are not checked: %s (said once; others may follow)", kernel.name.c_str(),
       kernel.unknown.c_str());
}

}  // namespace

ArgumentPointers CheckArguments(const Kernel& kernel, const Arguments& arguments, unsigned grid_x,
                                unsigned grid_y) {
  found.pointers.clear();
  found.suspects.clear();
  if (kernel.parameters == nullptr) {
    NoteUnchecked(kernel);
    return {};
  }
  for (const ArgumentWords& words : kernel.words) {
    const Parameter parameter = (*kernel.parameters)[words.parameter];
    const char* argument = nullptr;
    if (arguments.each != nullptr) {
      argument = static_cast<const char*>(arguments.each[words.parameter]);
    } else if (parameter.offset + size_t{parameter.size} <= arguments.buffer_size) {
      argument = static_cast<const char*>(arguments.buffer) + parameter.offset;
    }
    if (argument != nullptr)
      Scan(words, argument, FilledCount(words, argument, parameter.size, grid_x, grid_y));
  }
  for (const Suspect& suspect : found.suspects) {
    if (!IsEndOfBlock(suspect.address) && (suspect.mapped || !IsEndOfAllocation(suspect.address)))
      ReportSuspect(kernel, suspect);
  }
  return {found.pointers.data(), found.pointers.size()};
}

}  // namespace weir::emulated
