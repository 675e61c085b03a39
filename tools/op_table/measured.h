// What the probe knows of one aten operator, and the calls that it keeps to repeat them.
//
// One thread measures at a time (the engine's thread runs while the caller waits), so nothing here is locked.
#ifndef WEIR_TOOLS_OP_TABLE_MEASURED_H_
#define WEIR_TOOLS_OP_TABLE_MEASURED_H_

#include <ATen/core/ivalue.h>
#include <ATen/core/operator_name.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace weir::op_table {

// One operator under one source of arguments. Arguments are numbers in the schema's order; bytes are bytes.
struct Measured {
  int runs = 0;                 // calls that returned
  std::set<int> given;          // arguments that had CUDA memory in such a call
  std::set<std::string> fired;  // "3", "3.values": the materialize hook of one of their storages fired
  std::set<int>
      silent;  // a storage of the argument whose hook did not fire in some call of non-empty dense tensors
  std::set<int> tried, refused;   // called with the throwing flag on the argument; it threw
  std::set<std::string> inner;    // "3.values": a part of argument 3 that is no storage of its own threw
  std::set<std::string> layouts;  // of the arguments and results: "strided", "coo", "compressed", "nested"
  int temporaries = 0, kept = 0;  // most allocations that were not returned; of these, alive after the call
  uint64_t temporary_bytes = 0, kept_bytes = 0;  // most bytes of them alive at once
  double share = 0;                              // most temporary bytes per byte of arguments and results
};

// A call that returned, with copies of its arguments, to be repeated.
struct Call {
  c10::OperatorName op;
  std::string kind;  // which arguments have memory, and the layouts
  std::vector<c10::IValue> inputs;
};

// A value again with memory of its own; `change` is told each copied tensor. Throws for tensors without a clone.
c10::IValue Copy(const c10::IValue& value, const std::function<void(const at::Tensor&)>& change);

using Rows = std::map<std::string, Measured>;  // by "aten::add.Tensor"

// What the current source has measured, and the first calls of each operator.
Rows& CurrentRows();
std::map<std::string, std::vector<Call>>& CurrentCalls();

std::string FullName(const c10::OperatorName& op);

// While one exists, events on this thread are not measured.
class Unmeasured {
 public:
  Unmeasured();
  ~Unmeasured();
  Unmeasured(const Unmeasured&) = delete;
  Unmeasured& operator=(const Unmeasured&) = delete;
};

}  // namespace weir::op_table

#endif  // WEIR_TOOLS_OP_TABLE_MEASURED_H_
