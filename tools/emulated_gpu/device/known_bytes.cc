#include "tools/emulated_gpu/device/known_bytes.h"

#include <mutex>

#include "tools/emulated_gpu/device/host_pages.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/ranges.h"
#include "tools/emulated_gpu/device/reports.h"

namespace weir::emulated {
namespace {

std::mutex mutex;
auto& written = *new Ranges<uint64_t>;  // guarded by mutex; the value: blind launches before the write
auto& copied_out = *new Ranges<bool>;   // guarded by mutex: pinned memory; the value: whether it is known
constexpr size_t kMostRowsForgotten = 64;

// Kernels whose arguments nobody could read: they may have written anything.
uint64_t BlindLaunches() {
  const Counters& counted = Counted();
  return (Settings().checks ? counted.unchecked_launches : counted.launches).load(std::memory_order_relaxed);
}

}  // namespace

void RememberWritten(uintptr_t address, size_t size) {
  if (Settings().kernels != Kernels::kNone) return;
  std::lock_guard<std::mutex> lock(mutex);
  written.Set(address, size, BlindLaunches());
}

void ForgetWritten(uintptr_t address, size_t size) {
  if (Settings().kernels != Kernels::kNone) return;
  std::lock_guard<std::mutex> lock(mutex);
  written.Clear(address, size);
}

void ForgetAccess(const Access& access) {
  if (Settings().kernels != Kernels::kNone || access.use == Use::kRead) return;
  std::lock_guard<std::mutex> lock(mutex);
  if (access.use == Use::kUnknown && access.size <= 1) {
    written.ClearAround(access.begin);
  } else if (access.rows > kMostRowsForgotten) {
    written.Clear(access.begin, access.pitch * (access.rows - 1) + access.size);
  } else {
    for (size_t row = 0; row < access.rows; ++row)
      written.Clear(access.begin + row * access.pitch, access.size);
  }
}

bool IsKnown(uintptr_t address, size_t size) {
  const uint64_t blind = BlindLaunches();
  size_t known = 0;
  std::lock_guard<std::mutex> lock(mutex);
  written.ForEach(address, size, [&](uintptr_t begin, uintptr_t end, uint64_t launches) {
    if (size > kScalarBytes || launches == blind) known += end - begin;
  });
  return known == size;
}

std::vector<KnownPart> PartsOf(uintptr_t address, size_t size) {
  if (size <= kScalarBytes) return {{0, size, IsKnown(address, size)}};
  std::vector<KnownPart> parts;
  size_t at = 0;
  const auto add = [&](size_t end, bool known) {
    if (end == at) return;
    if (!parts.empty() && parts.back().known == known) {
      parts.back().size += end - at;
    } else {
      parts.push_back({at, end - at, known});
    }
    at = end;
  };
  std::lock_guard<std::mutex> lock(mutex);
  written.ForEach(address, size, [&](uintptr_t begin, uintptr_t end, uint64_t) {
    add(begin - address, false);
    add(end - address, true);
  });
  add(size, false);
  return parts;
}

void RememberCopiedOut(uintptr_t pinned, const std::vector<KnownPart>& parts) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const KnownPart& part : parts) copied_out.Set(pinned + part.offset, part.size, part.known);
}

void ForgetPinned(uintptr_t pinned, size_t size) {
  std::lock_guard<std::mutex> lock(mutex);
  copied_out.Clear(pinned, size);
}

std::vector<PinnedPart> PinnedPartsOf(uintptr_t pinned, size_t size) {
  using Origin = PinnedPart::Origin;
  std::vector<PinnedPart> parts;
  size_t at = 0;
  const auto add = [&](size_t end, Origin origin) {
    if (end > at) parts.push_back({at, end - at, origin});
    at = end;
  };
  std::lock_guard<std::mutex> lock(mutex);
  copied_out.ForEach(pinned, size, [&](uintptr_t begin, uintptr_t end, bool known) {
    add(begin - pinned, Origin::kOwn);
    if (known) {
      add(end - pinned, Origin::kKnown);
    } else {
      add(end - pinned, AreZeros(begin, end - begin) ? Origin::kUnknown : Origin::kOwn);
    }
  });
  add(size, Origin::kOwn);
  return parts;
}

}  // namespace weir::emulated
