#include "pytorch_plugin/op_writes.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "allocator/base/safeguards.h"

namespace weir::plugin {
namespace {

struct AuditedOp {
  std::string_view name;     // with overload
  std::string_view written;  // names of arguments, each followed by a comma
  std::string_view hooked;   // of these, by the mutable accessor
};

// Sorted by name. The first entry stands for a torch without a table: nothing is audited.
constexpr AuditedOp kAuditedOps[] = {
    {"", "", ""},
#include "audited_ops.inc"  // tools/op_table/to_cpp.py
};

const AuditedOp* Find(std::string_view name) {
  const AuditedOp* found =
      std::lower_bound(std::begin(kAuditedOps), std::end(kAuditedOps), name,
                       [](const AuditedOp& op, std::string_view wanted) { return op.name < wanted; });
  return found != std::end(kAuditedOps) && found->name == name ? found : nullptr;
}

bool Names(std::string_view list, const std::string& argument) {
  const std::string item = argument + ",";
  for (size_t at = list.find(item); at != std::string_view::npos; at = list.find(item, at + 1)) {
    if (at == 0 || list[at - 1] == ',') return true;
  }
  return false;
}

}  // namespace

std::vector<Write> WritesOf(const c10::FunctionSchema& schema) {
  const std::string& overload = schema.overload_name();
  const AuditedOp* op = Find(overload.empty() ? schema.name() : schema.name() + "." + overload);
  std::vector<Write> writes;
  for (const c10::Argument& argument : schema.arguments()) {
    const bool maybe = op == nullptr
                           ? !Without(Safeguard::kUnauditedWritesAll)
                           : Names(op->written, argument.name()) && !Without(Safeguard::kTableWrites);
    if (op != nullptr && Names(op->hooked, argument.name()) && !Without(Safeguard::kTableWrites)) {
      writes.push_back(Write::kHooked);
    } else if (maybe) {
      writes.push_back(Write::kMaybe);
    } else {
      writes.push_back(Write::kNever);
    }
  }
  return writes;
}

}  // namespace weir::plugin
