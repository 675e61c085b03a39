#include "tools/emulated_gpu/device/value_reads.h"

#include <algorithm>
#include <mutex>

#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/python_place.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/stacks.h"

namespace weir::emulated {
namespace {

constexpr size_t kMostPrinted = 20;

std::mutex mutex;
auto& reads = *new std::vector<ValueRead>;  // guarded by mutex; by first read
// Per operator that will be computed: the bytes that were read before it. `not_counted` are those until now.
thread_local std::vector<size_t> computed_ops;
thread_local size_t not_counted = 0;

std::string FirstFrame(const ShortStack& stack) {
  const std::string frames = NameFrames(stack);
  return frames.substr(0, frames.find(" < "));
}

std::string Places(size_t count) { return std::to_string(count) + (count == 1 ? " place" : " places"); }

}  // namespace

void NoteRead(Carried carried, size_t bytes) {
  if (!computed_ops.empty()) {
    not_counted += bytes;
    return;
  }
  const ShortStack stack = TakeStack();
  // What an allocator takes out of the way comes back; nobody looks at it.
  if (CallerIs(stack, "libweir_core.so")) return;
  const Place python = PythonPlace();
  if (python.prints) return;
  const std::string op = CurrentOp(), place = python.text.empty() ? FirstFrame(stack) : python.text;
  const bool floats = carried == Carried::kFloats;
  std::lock_guard<std::mutex> lock(mutex);
  auto known = std::find_if(reads.begin(), reads.end(), [&](const ValueRead& read) {
    return read.floats == floats && read.place == place && read.op == op;
  });
  if (known == reads.end()) known = reads.insert(known, {op, place, floats});
  ++known->times;
  known->bytes += bytes;
}

Verdict VerdictOfRun() {
  std::lock_guard<std::mutex> lock(mutex);
  if (reads.empty()) return Verdict::kExact;
  const bool only_floats =
      std::all_of(reads.begin(), reads.end(), [](const ValueRead& read) { return read.floats; });
  return only_floats ? Verdict::kExactUnlessFloatsDecide : Verdict::kEstimate;
}

std::vector<ValueRead> ReadsOfRun() {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<ValueRead> sorted = reads;
  std::stable_partition(sorted.begin(), sorted.end(), [](const ValueRead& read) { return !read.floats; });
  return sorted;
}

void ReadsAtExit() {
  if (!Settings().timing || Settings().kernels != Kernels::kNone) return;
  const std::vector<ValueRead> all = ReadsOfRun();
  const auto floats = static_cast<size_t>(
      std::count_if(all.begin(), all.end(), [](const ValueRead& read) { return read.floats; }));
  if (all.empty()) {
    Note("values: exact; the program read nothing that was not computed");
  } else if (floats == all.size()) {
    Note(
        "values: exact, unless a floating-point value that was read and not computed (0 was given) decides a "
        "shape or a branch: %s",
        Places(floats).c_str());
  } else {
    Note(
        "values: estimate; integers, booleans or sizes were read and not computed (0 was given), they may "
        "decide shapes and branches: %s; floating-point values at %s",
        Places(all.size() - floats).c_str(), Places(floats).c_str());
  }
  for (size_t i = 0; i < std::min(all.size(), kMostPrinted); ++i) {
    const ValueRead& read = all[i];
    Note("values: %s at %s, %lu times, %lu bytes%s", read.op.empty() ? "a copy" : read.op.c_str(),
         read.place.c_str(), read.times, read.bytes, read.floats ? ", floating-point" : "");
  }
  if (all.size() > kMostPrinted) Note("values: and %s more", Places(all.size() - kMostPrinted).c_str());
}

void ReadsStopCounting() { computed_ops.push_back(not_counted); }

void ReadsCountAgain(bool computed) {
  if (computed) not_counted = computed_ops.back();
  computed_ops.pop_back();
  if (!computed_ops.empty() || not_counted == 0) return;
  NoteRead(Carried::kUnknown, not_counted);
  not_counted = 0;
}

}  // namespace weir::emulated
