// What the blocks that were alive at one moment of a trace are to the job, worked out from all that happens to them.
//
// An *epoch* is a stretch of one phase (format.h: outside, backward, optimizer). A block that no op has as a tensor (a
// library's workspace) is temporary; others, in this order:
//   parameter   some op gets it as a leaf that takes gradients
//   optimizer   made in an optimizer step, alive after it
//   gradient    touched while autograd accumulates gradients, or made in backward, and alive after that backward
//   input       copied from CPU memory; or made outside, by no op that autograd follows, and alive after the next epoch too
//               (data, buffers, constants; weights, where nothing takes gradients)
//   activation  made outside and alive when the next epoch begins: kept for backward
//   temporary   everything else
// A block that is alive when the trace ends counts as alive after everything.
//
// Memory: one entry per block that is alive. One thread.
#ifndef WEIR_TRACE_TENSOR_CLASSES_H_
#define WEIR_TRACE_TENSOR_CLASSES_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/format.h"

namespace weir::trace {

enum class TensorClass : uint8_t { kParameter, kGradient, kOptimizer, kActivation, kInput, kTemporary };
inline constexpr size_t kTensorClasses = 6;
const char* NameOf(TensorClass tensor_class);

using BytesByClass = std::array<uint64_t, kTensorClasses>;

class ClassifiedMoment {
 public:
  // The moment: right after the record of that index (all records count, from 0).
  explicit ClassifiedMoment(uint64_t moment) : moment_(moment) {}

  // Every record in order. `accumulates`: the record begins autograd's accumulation of a gradient.
  void Add(const Record& record, bool accumulates);
  // After the last record: the bytes that were alive at the moment, by class.
  BytesByClass Finish();

 private:
  struct Block {
    uint64_t bytes = 0;
    uint32_t born = 0;         // epochs
    uint32_t accumulated = 0;  // the last in which autograd accumulated into it; 0: none
    Phase born_in = Phase::kOutside;
    bool tensor = false, leaf = false, derived = false, from_host = false;
    bool counted = false;  // alive at the moment
  };
  void BeginOp(const Record& record, bool accumulates);
  void Touch(const Record& record);
  void Die(const Block& block, bool at_end);
  TensorClass ClassOf(const Block& block, bool at_end) const;

  const uint64_t moment_;
  uint64_t index_ = 0;
  uint32_t epoch_ = 1;
  Phase phase_ = Phase::kOutside;
  absl::flat_hash_map<uint64_t, Block> blocks_;  // by address
  absl::flat_hash_map<uint16_t, uint32_t>
      accumulating_;  // thread: events open inside an accumulation, it included
  BytesByClass bytes_{};
};

}  // namespace weir::trace

#endif  // WEIR_TRACE_TENSOR_CLASSES_H_
