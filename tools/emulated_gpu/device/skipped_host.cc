#include "tools/emulated_gpu/device/skipped_host.h"

#include <atomic>

#include "tools/emulated_gpu/device/host_pages.h"
#include "tools/emulated_gpu/device/known_bytes.h"
#include "tools/emulated_gpu/device/reports.h"

namespace weir::emulated {

void SkipHostBytes(const char* op, uintptr_t begin, size_t size) {
  DropPages(begin, size);
  RememberCopiedOut(begin, {{0, size, /*known=*/false}});
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  Note(
      "large CPU tensors are not filled with random numbers: they read as zeros and take no RAM (%s of %zu "
      "MiB; said once, "
      "others may follow)",
      op, size >> 20);
}

void ZeroHostBytes(uintptr_t begin, size_t size) {
  DropPages(begin, size);
  ForgetPinned(begin, size);
}

int AreHostBytesSkipped(uintptr_t begin, size_t size) {
  for (const PinnedPart& part : PinnedPartsOf(begin, size)) {
    if (part.origin != PinnedPart::Origin::kUnknown) return 0;
  }
  return 1;
}

}  // namespace weir::emulated
