// Repeats kept calls as variants, and with the throwing flag on one argument.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/StorageImpl.h>

#include <cstring>
#include <exception>
#include <functional>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "tools/op_table/measured.h"
#include "tools/op_table/probe.h"
#include "tools/op_table/storages.h"
#include "tools/op_table/write_watch.h"

namespace weir::op_table {
namespace {

using c10::IValue;
using Stack = std::vector<IValue>;

constexpr char kDenied[] = "weir op table: this argument is denied";

char* current_op = nullptr;
std::set<std::string> skipped;

bool Skips(const std::string& name) { return skipped.count(name) != 0; }

// True if the call returned; `stack` then has the results.
bool Returns(const c10::OperatorHandle& handle, Stack& stack, std::string* error = nullptr) {
  SetCurrentOp(FullName(handle.operator_name()));
  try {
    at::AutoDispatchBelowADInplaceOrView guard;
    handle.callBoxed(&stack);
    return true;
  } catch (const c10::Error& e) {
    if (error != nullptr) *error = e.what_without_backtrace();  // what() looks up every frame's symbol
    return false;
  } catch (const std::exception&) {
    return false;
  }
}

const std::vector<c10::OperatorHandle>& Overloads(const std::string& name) {
  static auto* by_name = [] {
    auto* table = new std::unordered_map<std::string, std::vector<c10::OperatorHandle>>;
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& op : dispatcher.getAllOpNames()) {
      if (auto handle = dispatcher.findSchema(op)) (*table)[op.name].push_back(*handle);
    }
    return table;
  }();
  return (*by_name)[name];
}

// Arguments of `variant` taken from a call of `schema` by name; nothing if it needs others than out=.
std::optional<Stack> ArgumentsFor(const c10::FunctionSchema& variant, const c10::FunctionSchema& schema,
                                  const Stack& inputs, const Stack& results) {
  Stack stack;
  size_t taken = 0, result = 0;
  for (const c10::Argument& argument : variant.arguments()) {
    const std::optional<int> index = schema.argumentIndexWithName(argument.name());
    if (index && *schema.arguments()[static_cast<size_t>(*index)].type() == *argument.type()) {
      stack.push_back(inputs[static_cast<size_t>(*index)]);
      ++taken;
    } else if (argument.is_out() && result < results.size()) {
      stack.push_back(results[result++]);
    } else {
      return std::nullopt;
    }
  }
  if (taken != schema.arguments().size()) return std::nullopt;
  return stack;
}

// New tensors like the results of a call, for out=.
std::optional<Stack> LikeResults(const Stack& results) {
  Stack made;
  for (const IValue& value : results) {
    if (value.isTensor()) {
      made.emplace_back(at::empty_like(value.toTensor()));
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(at::empty_like(tensor));
      made.emplace_back(list);
    } else {
      return std::nullopt;
    }
  }
  return made;
}

// Makes the part called `part` throw.
void Deny(const at::Tensor& tensor, const std::string& part) {
  ForEachPart(tensor, [&part](const at::Tensor& inner, const char* name) {
    if (part != name || !inner.is_cuda() || !inner.unsafeGetTensorImpl()->has_storage()) return;
    auto* storage = inner.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    storage->release_data_and_set_meta_custom_data_ptr_error_msg_(std::string(kDenied));
  });
}

// In-place variants may change sizes and strides, so they get tensors of their own: kept arguments can be parts
// of a sparse tensor that another call needs as it was. False: it cannot be cloned.
bool OwnWritten(const c10::FunctionSchema& schema, Stack& stack) {
  try {
    for (size_t i = 0; i < stack.size(); ++i) {
      const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
      if (alias != nullptr && alias->isWrite()) stack[i] = Copy(stack[i], [](const at::Tensor&) {});
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void RunVariants(const Call& call, const c10::OperatorHandle& handle) {
  const c10::FunctionSchema& schema = handle.schema();
  if (schema.is_mutable()) return;
  std::optional<Stack> outs;
  {
    Unmeasured off;
    Stack stack = call.inputs;
    try {
      if (Returns(handle, stack)) outs = LikeResults(stack);
    } catch (const std::exception&) {  // no empty_like for this kind of tensor
    }
  }
  if (!outs) return;
  for (const std::string& name : {call.op.name, call.op.name + "_"}) {
    for (const c10::OperatorHandle& variant : Overloads(name)) {
      if (!variant.schema().is_mutable() || Skips(FullName(variant.operator_name()))) continue;
      std::optional<Stack> stack = ArgumentsFor(variant.schema(), schema, call.inputs, *outs);
      if (stack && OwnWritten(variant.schema(), *stack)) Returns(variant, *stack);
    }
  }
}

std::set<std::string> PartsOf(const IValue& value) {
  std::set<std::string> parts;
  ForEachTensor(value, [&parts](const at::Tensor& tensor) {
    ForEachPart(tensor, [&parts](const at::Tensor& inner, const char* name) {
      if (inner.defined() && inner.is_cuda() && inner.numel() != 0) parts.insert(name);
    });
  });
  return parts;
}

// Calls with one part of one argument denied after the other. Throws nothing.
void RunDenied(const Call& call, const c10::OperatorHandle& handle, Measured& row) {
  Unmeasured off;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    for (const std::string& part : PartsOf(call.inputs[i])) {
      Stack stack = call.inputs;
      std::string error;
      try {
        stack[i] = Copy(call.inputs[i], [&part](const at::Tensor& copy) { Deny(copy, part); });
      } catch (const std::exception&) {  // a kind of tensor that cannot be cloned
        continue;
      }
      const bool returned = Returns(handle, stack, &error);
      const bool denied = error.find(kDenied) != std::string::npos;
      if (!returned && !denied) continue;  // failed for another reason: says nothing
      const int number = static_cast<int>(i);
      row.tried.insert(number);
      if (denied) row.refused.insert(number);
      if (denied && !part.empty()) row.inner.insert(std::to_string(number) + "." + part);
    }
  }
}

template <typename Items>
void Write(std::ostringstream& out, const Items& items) {
  const char* comma = "";
  for (const auto& item : items) {
    out << comma << item;
    comma = ",";
  }
  out << '\t';
}

at::Tensor CopyOf(const at::Tensor& tensor, const std::function<void(const at::Tensor&)>& change) {
  if (!tensor.defined()) return tensor;
  at::Tensor copy = tensor.detach().clone();
  change(copy);
  return copy;
}

}  // namespace

IValue Copy(const IValue& value, const std::function<void(const at::Tensor&)>& change) {
  if (value.isTensor()) return CopyOf(value.toTensor(), change);
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(CopyOf(tensor, change));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& tensor : value.toOptionalTensorList()) {
      std::optional<at::Tensor> item = tensor;
      list.push_back(item && item->defined() ? std::optional(CopyOf(*item, change)) : std::nullopt);
    }
    return list;
  }
  return value;
}

Rows& CurrentRows() {
  static auto* rows = new Rows;
  return *rows;
}

std::map<std::string, std::vector<Call>>& CurrentCalls() {
  static auto* calls = new std::map<std::string, std::vector<Call>>;
  return *calls;
}

std::string FullName(const c10::OperatorName& op) {
  return op.overload_name.empty() ? op.name : op.name + "." + op.overload_name;
}

void SetCurrentOp(const std::string& name) { std::strncpy(current_op, name.c_str(), 255); }

}  // namespace weir::op_table

using namespace weir::op_table;

extern "C" {

__attribute__((visibility("default"))) const char* weir_probe_start(char* current) {
  current_op = current;
  StartObserving();
  return WatchedBy();
}

__attribute__((visibility("default"))) void weir_probe_reset() {
  CurrentRows().clear();
  CurrentCalls().clear();
}

__attribute__((visibility("default"))) void weir_probe_replay(const char* skip) {
  std::istringstream names(skip);
  skipped.clear();
  for (std::string name; names >> name;) skipped.insert(name);
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  const auto first = CurrentCalls();  // variants add their own calls
  for (const auto& [name, calls] : first) {
    for (const Call& call : calls) {
      if (auto handle = dispatcher.findSchema(call.op); handle && !Skips(name)) RunVariants(call, *handle);
    }
  }
  const auto all = CurrentCalls();
  for (const auto& [name, calls] : all) {
    for (const Call& call : calls) {
      auto handle = dispatcher.findSchema(call.op);
      if (handle && !Skips(name)) RunDenied(call, *handle, CurrentRows()[name]);
    }
  }
}

__attribute__((visibility("default"))) const char* weir_probe_rows() {
  static std::string text;
  std::ostringstream out;
  for (const auto& [name, row] : CurrentRows()) {
    out << name << '\t' << row.runs << '\t';
    Write(out, row.given);
    Write(out, row.fired);
    Write(out, row.silent);
    Write(out, row.tried);
    Write(out, row.refused);
    Write(out, row.inner);
    Write(out, row.layouts);
    out << row.temporaries << '\t' << row.temporary_bytes << '\t' << row.kept << '\t' << row.kept_bytes
        << '\t' << row.share << '\n';
  }
  text = out.str();
  return text.c_str();
}
}
