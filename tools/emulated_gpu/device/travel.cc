#include "tools/emulated_gpu/device/travel.h"

#include <algorithm>
#include <cstdint>

#include "tools/emulated_gpu/device/addresses.h"
#include "tools/emulated_gpu/device/known_bytes.h"
#include "tools/emulated_gpu/device/memory.h"
#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/value_reads.h"

namespace weir::emulated {
namespace {

struct Ends {
  char* to;
  const char* from;
  Side to_side, from_side;
  uintptr_t To(size_t offset = 0) const { return reinterpret_cast<uintptr_t>(to) + offset; }
  uintptr_t From() const { return reinterpret_cast<uintptr_t>(from); }
};

Rows OneRow(size_t bytes) { return {bytes, bytes, bytes, 1}; }

size_t MostMoved() { return CarriedByOp() == Carried::kIntegers ? kMovedIntegers : kMovedBytes; }

void Move(const Ends& ends, size_t offset, size_t size, std::vector<Transfer>& moves) {
  moves.push_back(Transfer::Move(ends.to + offset, ends.from + offset, OneRow(size)));
}

std::vector<Transfer> FromHost(const Ends& ends, size_t bytes) {
  using Origin = PinnedPart::Origin;
  std::vector<Transfer> moves;
  for (const PinnedPart& part : PinnedPartsOf(ends.From(), bytes)) {
    const bool known =
        part.origin == Origin::kKnown || (part.origin == Origin::kOwn && part.size <= MostMoved());
    if (known) {
      RememberWritten(ends.To(part.offset), part.size);
      Move(ends, part.offset, part.size, moves);
    } else {
      ForgetWritten(ends.To(part.offset), part.size);
    }
  }
  return moves;
}

std::vector<Transfer> InsideDevice(const Ends& ends, size_t bytes) {
  std::vector<Transfer> moves;
  for (const KnownPart& part : PartsOf(ends.From(), bytes)) {
    if (part.known) {
      RememberWritten(ends.To(part.offset), part.size);
      Move(ends, part.offset, part.size, moves);
    } else {
      ForgetWritten(ends.To(part.offset), part.size);
    }
  }
  return moves;
}

std::vector<Transfer> ToHost(const Ends& ends, size_t bytes) {
  std::vector<Transfer> moves;
  const std::vector<KnownPart> parts = PartsOf(ends.From(), bytes);
  size_t unknown = 0;
  for (const KnownPart& part : parts) {
    if (part.known) {
      Move(ends, part.offset, part.size, moves);
      continue;
    }
    unknown += part.size;
    moves.push_back(part.size > kMovedBytes ? Transfer::Drop(ends.to + part.offset, part.size)
                                            : Transfer::Fill(ends.to + part.offset, 0, 1, OneRow(part.size)));
  }
  if (ends.to_side == Side::kPinned) {
    bytes > kMovedBytes ? RememberCopiedOut(ends.To(), parts) : ForgetPinned(ends.To(), bytes);
  }
  if (unknown > 0) NoteRead(CarriedByOp(), unknown);
  return moves;
}

// Rectangles are known as a whole or not at all.
std::vector<Transfer> Rectangle(const Ends& ends, const Rows& rows) {
  const size_t from_span = Span(rows.from_pitch, rows);
  const bool from_device = ends.from_side == Side::kDevice, to_device = ends.to_side == Side::kDevice;
  const bool known = from_device ? IsKnown(ends.From(), from_span) : from_span <= MostMoved();
  for (size_t row = 0; row < rows.height && to_device; ++row) {
    const uintptr_t begin = ends.To(row * rows.to_pitch);
    known ? RememberWritten(begin, rows.width) : ForgetWritten(begin, rows.width);
  }
  if (known) return {Transfer::Move(ends.to, ends.from, rows)};
  if (to_device) return {};
  NoteRead(CarriedByOp(), rows.width * rows.height);
  if (from_span > kMovedBytes) return {};
  return {Transfer::Fill(ends.to, 0, 1, rows)};
}

}  // namespace

Side SideOf(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (InDeviceWindow(at)) return Side::kDevice;
  return Locate(at).where == Where::kPageable ? Side::kPageable : Side::kPinned;
}

std::vector<Transfer> TravelOfCopy(void* to, const void* from, const Rows& rows) {
  const Ends ends{static_cast<char*>(to), static_cast<const char*>(from), SideOf(to), SideOf(from)};
  if (Settings().kernels == Kernels::kCpu) return {Transfer::Move(to, from, rows)};
  if (ends.to_side != Side::kDevice && ends.from_side != Side::kDevice) {
    if (ends.to_side == Side::kPinned) ForgetPinned(ends.To(), Span(rows.to_pitch, rows));
    return {Transfer::Move(to, from, rows)};
  }
  if (rows.height > 1) return Rectangle(ends, rows);
  if (ends.from_side != Side::kDevice) return FromHost(ends, rows.width);
  return ends.to_side == Side::kDevice ? InsideDevice(ends, rows.width) : ToHost(ends, rows.width);
}

std::vector<Transfer> TravelOfFill(void* to, unsigned value, size_t element, const Rows& rows) {
  const Transfer fill = Transfer::Fill(to, value, element, rows);
  if (Settings().kernels == Kernels::kCpu) return {fill};
  const auto begin = reinterpret_cast<uintptr_t>(to);
  const size_t span = Span(rows.to_pitch, rows);
  if (SideOf(to) == Side::kPinned) ForgetPinned(begin, span);
  if (span > kMovedBytes) {
    ForgetWritten(begin, span);
    return {};
  }
  for (size_t row = 0; row < rows.height; ++row) RememberWritten(begin + row * rows.to_pitch, rows.width);
  return {fill};
}

}  // namespace weir::emulated
