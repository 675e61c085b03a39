#include "tools/emulated_gpu/device/copies.h"

#include <cstdint>
#include <cstring>

#include "tools/emulated_gpu/device/addresses.h"
#include "tools/emulated_gpu/device/known_bytes.h"
#include "tools/emulated_gpu/device/lifecycle.h"
#include "tools/emulated_gpu/device/memory.h"
#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/streams.h"

namespace weir::emulated {
namespace {

size_t Span(size_t pitch, const Rows& rows) {
  return rows.height == 0 || rows.width == 0 ? 0 : pitch * (rows.height - 1) + rows.width;
}

bool DirectionFits(Direction direction, bool to_device, bool from_device) {
  switch (direction) {
    case Direction::kHostToHost:
      return !to_device && !from_device;
    case Direction::kHostToDevice:
      return to_device;  // the source may be any address, as with unified addressing
    case Direction::kDeviceToHost:
      return from_device;
    default:
      return true;
  }
}

Status CheckEnd(const void* address, size_t bytes, const char* what, Touch touch) {
  const Status status = CheckTouch(reinterpret_cast<uintptr_t>(address), bytes, what, touch);
  if (status != CUDA_SUCCESS) SetSticky(status);
  return status;
}

Access Rectangle(const void* begin, size_t pitch, const Rows& rows, Use use) {
  return {reinterpret_cast<uintptr_t>(begin), rows.width, use, pitch, rows.height};
}

// The call returns only when the copy is complete.
bool Waits(const void* to, bool to_device, bool from_device, Call call) {
  if (to_device && from_device) return false;
  if (!to_device && !from_device) return true;
  return call == Call::kBlocking ||
         (!to_device && Locate(reinterpret_cast<uintptr_t>(to)).where == Where::kPageable);
}

void Count(size_t bytes) {
  Counted().copies.fetch_add(1, std::memory_order_relaxed);
  Counted().copied_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

// How bytes travel: with kernels `none` nothing moves above kMovedBytes, and what no host code wrote reads as
// zeros.
enum class Travel { kMove, kZeros, kStay };

Travel HowToCopy(uintptr_t to, bool to_device, uintptr_t from, bool from_device, size_t span) {
  if (Settings().kernels == Kernels::kCpu) return Travel::kMove;
  const bool known = !from_device || IsKnown(from, span);
  const bool moves = span <= kMovedBytes;
  if (to_device) known&& moves ? RememberWritten(to, span) : ForgetWritten(to, span);
  if (!moves) return Travel::kStay;
  return known || to_device ? Travel::kMove : Travel::kZeros;
}

void MoveRows(void* to, const void* from, const Rows& rows, Travel travel) {
  for (size_t row = 0; row < rows.height && travel != Travel::kStay; ++row) {
    char* target = static_cast<char*>(to) + row * rows.to_pitch;
    if (travel == Travel::kZeros) {
      std::memset(target, 0, rows.width);
    } else {
      std::memmove(target, static_cast<const char*>(from) + row * rows.from_pitch, rows.width);
    }
  }
}

void FillRow(char* to, unsigned value, size_t element, size_t width) {
  if (element == 1) {
    std::memset(to, static_cast<int>(value), width);
    return;
  }
  for (size_t at = 0; at + element <= width; at += element) std::memcpy(to + at, &value, element);
}

}  // namespace

Status Copy(void* to, const void* from, const Rows& rows, Direction direction, Call call, CUstream handle) {
  Stream* stream = FindStream(handle, "copy");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const size_t to_span = Span(rows.to_pitch, rows), from_span = Span(rows.from_pitch, rows);
  if (to_span == 0) return CUDA_SUCCESS;
  const bool to_device = InDeviceWindow(reinterpret_cast<uintptr_t>(to));
  const bool from_device = InDeviceWindow(reinterpret_cast<uintptr_t>(from));
  if (to == nullptr || from == nullptr || !DirectionFits(direction, to_device, from_device)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Status status = CheckEnd(to, to_span, "a copy's destination", Touch::kWrite);
  if (status == CUDA_SUCCESS) status = CheckEnd(from, from_span, "a copy's source", Touch::kRead);
  if (status != CUDA_SUCCESS) return status;
  const size_t bytes = rows.width * rows.height;
  Count(bytes);
  WaitForHostWork(*stream);
  const Access accesses[] = {Rectangle(from, rows.from_pitch, rows, Use::kRead),
                             Rectangle(to, rows.to_pitch, rows, Use::kWrite)};
  NoteWork(*stream, "copy", accesses, 2);
  MoveRows(to, from, rows,
           HowToCopy(reinterpret_cast<uintptr_t>(to), to_device, reinterpret_cast<uintptr_t>(from),
                     from_device, from_span));
  if (Waits(to, to_device, from_device, call)) return SynchronizeStream(handle);
  return CUDA_SUCCESS;
}

Status Fill(void* to, unsigned value, size_t element, const Rows& rows, Call call, CUstream handle) {
  Stream* stream = FindStream(handle, "memset");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const size_t span = Span(rows.to_pitch, rows);
  if (span == 0) return CUDA_SUCCESS;
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Status status = CheckEnd(to, span, "a memset", Touch::kWrite);
  if (status != CUDA_SUCCESS) return status;
  const size_t bytes = rows.width * rows.height;
  Count(bytes);
  WaitForHostWork(*stream);
  const Access access = Rectangle(to, rows.to_pitch, rows, Use::kWrite);
  NoteWork(*stream, "memset", &access, 1);
  if (call == Call::kBlocking && !InDeviceWindow(reinterpret_cast<uintptr_t>(to))) SynchronizeStream(handle);
  const bool moves = Settings().kernels == Kernels::kCpu || span <= kMovedBytes;
  moves ? RememberWritten(reinterpret_cast<uintptr_t>(to), span)
        : ForgetWritten(reinterpret_cast<uintptr_t>(to), span);
  if (!moves) return CUDA_SUCCESS;
  for (size_t row = 0; row < rows.height; ++row) {
    FillRow(static_cast<char*>(to) + row * rows.to_pitch, value, element, rows.width);
  }
  return CUDA_SUCCESS;
}

}  // namespace weir::emulated
