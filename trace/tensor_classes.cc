#include "trace/tensor_classes.h"

namespace weir::trace {

const char* NameOf(TensorClass tensor_class) {
  constexpr std::array<const char*, kTensorClasses> kNames = {"parameter",  "gradient", "optimizer",
                                                              "activation", "input",    "temporary"};
  return kNames[static_cast<size_t>(tensor_class)];
}

void ClassifiedMoment::Add(const Record& record, bool accumulates) {
  switch (record.kind) {
    case Kind::kAllocate: {
      Block& block = blocks_[record.address];
      if (block.bytes > 0) Die(block, /*at_end=*/false);  // its free was lost
      block = Block{.bytes = record.amount, .born = epoch_, .born_in = phase_};
      break;
    }
    case Kind::kFree:
      if (const auto found = blocks_.find(record.address); found != blocks_.end()) {
        Die(found->second, /*at_end=*/false);
        blocks_.erase(found);
      }
      break;
    case Kind::kOpBegin:
      BeginOp(record, accumulates);
      break;
    case Kind::kOpEnd:
      if (const auto open = accumulating_.find(record.thread);
          open != accumulating_.end() && --open->second == 0) {
        accumulating_.erase(open);
      }
      break;
    case Kind::kTensor:
      Touch(record);
      break;
    case Kind::kPhase:
      if (static_cast<Phase>(record.detail) != phase_) ++epoch_;
      phase_ = static_cast<Phase>(record.detail);
      break;
    default:
      break;
  }
  if (index_++ != moment_) return;
  for (auto& [address, block] : blocks_) block.counted = true;
}

void ClassifiedMoment::BeginOp(const Record& record, bool accumulates) {
  const auto open = accumulating_.find(record.thread);
  if (open != accumulating_.end()) {
    ++open->second;
  } else if (accumulates) {
    accumulating_[record.thread] = 1;
  }
}

void ClassifiedMoment::Touch(const Record& record) {
  const auto found = blocks_.find(record.address);
  if (found == blocks_.end()) return;
  Block& block = found->second;
  block.tensor = true;
  block.leaf |= (record.detail & kLeaf) != 0;
  block.derived |= (record.detail & kDerived) != 0;
  block.from_host |= (record.detail & kFromHost) != 0 && (record.detail & (kWritten | kResult)) != 0;
  if (accumulating_.contains(record.thread)) block.accumulated = epoch_;
}

void ClassifiedMoment::Die(const Block& block, bool at_end) {
  if (block.counted) bytes_[static_cast<size_t>(ClassOf(block, at_end))] += block.bytes;
}

TensorClass ClassifiedMoment::ClassOf(const Block& block, bool at_end) const {
  const auto outlives = [&](uint32_t epoch) { return at_end || epoch_ > epoch; };
  if (!block.tensor) return TensorClass::kTemporary;
  if (block.leaf) return TensorClass::kParameter;
  if (block.born_in == Phase::kOptimizer) {
    return outlives(block.born) ? TensorClass::kOptimizer : TensorClass::kTemporary;
  }
  if (block.accumulated != 0 && outlives(block.accumulated)) return TensorClass::kGradient;
  if (block.born_in == Phase::kBackward) {
    return outlives(block.born) ? TensorClass::kGradient : TensorClass::kTemporary;
  }
  if (block.from_host) return TensorClass::kInput;
  if (!block.derived && outlives(block.born + 1)) return TensorClass::kInput;
  return outlives(block.born) ? TensorClass::kActivation : TensorClass::kTemporary;
}

BytesByClass ClassifiedMoment::Finish() {
  for (const auto& [address, block] : blocks_) Die(block, /*at_end=*/true);
  blocks_.clear();
  return bytes_;
}

}  // namespace weir::trace
