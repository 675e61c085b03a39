// What the op in flight on a thread keeps in VRAM (R1): everything it allocated or touched, until its outermost op
// ends. One object per thread, used by that thread only; the pin counters themselves live in the extents.
#ifndef WEIR_ALLOCATOR_OP_PINS_H_
#define WEIR_ALLOCATOR_OP_PINS_H_

#include <cstddef>
#include <vector>

#include "allocator/base/units.h"

namespace weir {

class DeviceAllocator;
struct Extent;

class OpPins {
 public:
  struct Pin {
    DeviceAllocator* device;
    Extent* extent;
    Stream stream;  // where the op uses it
  };

  // The object of the calling thread.
  static OpPins& OfThisThread();

  enum class Streams { kOwn, kAny };
  // `streams`: where the op uses what it pins: only on the stream that is said with each pin, or on any other too (ops
  // that are not torch's own).
  void Enter(const char* name, Streams streams = Streams::kOwn);
  // The innermost op ends; releases all pins when it was the outermost.
  void Leave();
  // Pins taken between the two are released at the end (list ops work chunk by chunk). Nests inside an op.
  void BeginChunk() { chunks_.push_back(pins_.size()); }
  void EndChunk();

  bool InOp() const { return !names_.empty(); }
  // An op in flight uses what it pins on any stream.
  bool UsesAnyStream() const { return any_stream_depth_ > 0; }
  // Innermost op's name, or "an allocation outside any op".
  const char* name() const;
  // The same of the outermost op, which lives until the last pin is released.
  const char* outermost() const;
  const std::vector<Pin>& pins() const { return pins_; }
  // The extent's pin counter has been raised by the caller, under the device's mutex.
  void Add(Pin pin) { pins_.push_back(pin); }
  // Takes back what was added since the list had `size` entries.
  void ReleaseFrom(size_t size);
  size_t size() const { return pins_.size(); }
  bool Holds(const DeviceAllocator* device) const;
  // Bytes of the distinct extents of `device` that this thread pins.
  Bytes BytesPinned(const DeviceAllocator* device) const;

 private:
  std::vector<const char*> names_;
  size_t any_stream_depth_ =
      0;  // names_.size() while the outermost op of this kind is the innermost; 0: none
  std::vector<Pin> pins_;
  std::vector<size_t> chunks_;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_OP_PINS_H_
