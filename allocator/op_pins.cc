#include "allocator/op_pins.h"

#include <absl/container/flat_hash_set.h>

#include "allocator/base/check.h"
#include "allocator/base/safeguards.h"
#include "allocator/device_allocator.h"
#include "allocator/extent.h"

namespace weir {

OpPins& OpPins::OfThisThread() {
  // Leaked on purpose: a tensor may be freed by a thread-local destructor that runs after ours would.
  static thread_local OpPins* pins = new OpPins;
  return *pins;
}

namespace {
constexpr char kNoOp[] = "an allocation outside any op";
}  // namespace

const char* OpPins::name() const { return names_.empty() ? kNoOp : names_.back(); }

const char* OpPins::outermost() const { return names_.empty() ? kNoOp : names_.front(); }

void OpPins::Enter(const char* name, Streams streams) {
  names_.push_back(name);
  if (streams == Streams::kAny && any_stream_depth_ == 0) any_stream_depth_ = names_.size();
}

void OpPins::Leave() {
  WEIR_DCHECK(!names_.empty());
  if (names_.empty()) return;
  names_.pop_back();
  if (names_.size() < any_stream_depth_) any_stream_depth_ = 0;
  if (!names_.empty() && !Without(Safeguard::kPinsUntilOutermost)) return;
  chunks_.clear();  // of a list op that threw
  ReleaseFrom(0);
}

void OpPins::EndChunk() {
  WEIR_DCHECK(!chunks_.empty());
  if (chunks_.empty()) return;
  size_t mark = chunks_.back();
  chunks_.pop_back();
  ReleaseFrom(mark);
}

void OpPins::ReleaseFrom(size_t size) {
  if (pins_.size() <= size) return;
  // All of one device at once: usually there is only one.
  while (pins_.size() > size) {
    DeviceAllocator* device = pins_[size].device;
    size_t kept = size;
    device->BeginUnpin();
    for (size_t i = size; i < pins_.size(); ++i) {
      if (pins_[i].device == device) {
        device->UnpinLocked(pins_[i].extent, pins_[i].stream);
      } else {
        pins_[kept++] = pins_[i];
      }
    }
    pins_.resize(kept);
    device->EndUnpin(*this);
  }
}

bool OpPins::Holds(const DeviceAllocator* device) const {
  for (const Pin& pin : pins_) {
    if (pin.device == device) return true;
  }
  return false;
}

Bytes OpPins::BytesPinned(const DeviceAllocator* device) const {
  absl::flat_hash_set<const Extent*> seen;
  Bytes sum;
  for (const Pin& pin : pins_) {
    if (pin.device == device && seen.insert(pin.extent).second) sum += pin.extent->bytes();
  }
  return sum;
}

}  // namespace weir
