// Kernels `none` only: which bytes of device memory hold what a card would hold there: the host wrote them, or they were
// computed (torch_kernels/known_values.h). All others read as zeros (a loss is 0.0, a count is 0). Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_KNOWN_BYTES_H_
#define WEIR_EMULATED_GPU_DEVICE_KNOWN_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/emulated_gpu/device/order.h"

namespace weir::emulated {

// A copy of known bytes, a memset or a computed operator wrote the range.
void RememberWritten(uintptr_t address, size_t size);
// Something that is not computed wrote it, or it was unmapped.
void ForgetWritten(uintptr_t address, size_t size);
// The same for what `access` writes, if it writes. Of memory whose size is not known (Use::kUnknown), what was known as
// one with its first byte.
void ForgetAccess(const Access& access);

// Known as a whole. A value of up to kScalarBytes counts only while no kernel whose arguments nobody could read was
// launched since: such small blocks are reused at once, by results of kernels above all.
inline constexpr size_t kScalarBytes = 16;
bool IsKnown(uintptr_t address, size_t size);

struct KnownPart {
  size_t offset, size;  // from the address that was asked for
  bool known;
};
// The parts of the range, in order and without gaps.
std::vector<KnownPart> PartsOf(uintptr_t address, size_t size);

// Pinned memory holds what the host wrote, which nobody sees. But what a copy from the device brought there may be unknown
// and reads as zeros then, until the host writes to it. Those parts are remembered, as what was skipped of pageable memory is
// (skipped_host.h).
void RememberCopiedOut(uintptr_t pinned, const std::vector<KnownPart>& parts);
void ForgetPinned(uintptr_t pinned, size_t size);
// kOwn: written by the host, as far as one can tell.
struct PinnedPart {
  size_t offset, size;
  enum class Origin { kOwn, kKnown, kUnknown } origin;
};
std::vector<PinnedPart> PinnedPartsOf(uintptr_t pinned, size_t size);

}  // namespace weir::emulated

#endif
