#include "pytorch_plugin/list_route.h"

#include <algorithm>

#include "pytorch_plugin/torch_version_lists.h"

namespace weir::plugin {
namespace {

using at::Tensor;

// How one tensor looks to the route decision.
struct Look {
  at::ScalarType type;
  at::Device device;
  bool strided, dense, like_first;
  bool operator==(const Look&) const = default;
};

bool SameSizesAndStrides(const Tensor& a, const Tensor& b) {
  if (a.layout() != at::kStrided || b.layout() != at::kStrided || a.sizes() != b.sizes()) return false;
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) != 1 && a.stride(d) != b.stride(d)) return false;
  }
  return true;
}

// Lists of 0-dim tensors (state_steps) do not take part in the comparison of strides.
bool AllZeroDim(const std::vector<Tensor>& list) {
  return std::all_of(list.begin(), list.end(), [](const Tensor& t) { return t.dim() == 0; });
}

Look LookOf(const Tensor& t, const Tensor& first, bool compare) {
  const bool strided = t.layout() == at::kStrided;
  return Look{t.scalar_type(), t.device(), strided, strided && t.is_non_overlapping_and_dense(),
              compare && SameSizesAndStrides(t, first)};
}

bool LooksAlike(const ListArguments& arguments) {
  for (const std::vector<Tensor>& list : arguments.lists) {
    const bool compare = !AllZeroDim(list);
    const Look look = LookOf(list[0], arguments.lists[0][0], compare);
    for (size_t i = 1; i < list.size(); ++i) {
      if (LookOf(list[i], arguments.lists[0][i], compare) != look) return false;
    }
  }
  return std::all_of(arguments.scalars.begin(), arguments.scalars.end(),
                     [&](const at::Scalar& scalar) { return scalar.type() == arguments.scalars[0].type(); });
}

// The bytes of one position, in memory.
struct Range {
  uintptr_t first, end;
  size_t index;
};

// False for tensors without plain storage: they cannot be compared.
bool AddRange(const Tensor& t, size_t index, std::vector<Range>* ranges) {
  if (!t.has_storage() || t.layout() != at::kStrided) return false;
  if (t.numel() == 0) return true;
  int64_t last = 0;
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  const auto base = reinterpret_cast<uintptr_t>(
      t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get());
  const size_t item = t.itemsize();
  const uintptr_t first = base + static_cast<size_t>(t.storage_offset()) * item;
  ranges->push_back(Range{first, first + (static_cast<size_t>(last) + 1) * item, index});
  return true;
}

// True if two positions share bytes: then the order of the pieces could show.
bool PositionsOverlap(const ListArguments& arguments) {
  std::vector<Range> ranges;
  for (const std::vector<Tensor>& list : arguments.lists) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (!AddRange(list[i], i, &ranges)) return true;
    }
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  Range reach{0, 0, 0};  // the range seen so far that goes furthest
  for (const Range& range : ranges) {
    if (range.first < reach.end && range.index != reach.index) return true;
    if (range.end > reach.end) reach = range;
  }
  return false;
}

bool SlowForCertain(const ListArguments& arguments, bool is_copy) {
  std::vector<at::TensorList> lists(arguments.lists.begin(), arguments.lists.end());
  return !MayTakeFastRoute(lists, is_copy);
}

bool IsTensorScalars(const c10::IValue& value, const std::string& name, size_t length) {
  if (name != "scalars" || !value.isTensor()) return false;
  const Tensor& t = value.toTensor();
  return t.defined() && t.dim() == 1 && static_cast<size_t>(t.size(0)) == length;
}

// True if `value` is cut with the lists or does not have to be; false: the call cannot be cut.
bool ParseList(const c10::IValue& value, size_t number, ListArguments* arguments) {
  c10::ArrayRef<c10::IValue> elements = value.toListRef();
  if (elements.empty()) return true;  // max_exp_avg_sqs without amsgrad
  if (value.isTensorList()) {
    if (arguments->length == 0) arguments->length = elements.size();
    std::vector<Tensor> list;
    for (const c10::IValue& element : elements) list.push_back(element.toTensor());
    arguments->lists.push_back(std::move(list));
  } else {
    for (const c10::IValue& element : elements) {
      if (!element.isScalar()) return false;
      arguments->scalars.push_back(element.toScalar());
    }
  }
  arguments->sliced.push_back(number);
  return elements.size() == arguments->length;
}

}  // namespace

ListArguments ParseListArguments(c10::ArrayRef<c10::IValue> arguments,
                                 const std::vector<std::string>& names) {
  ListArguments parsed;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].isList()) {
      if (!ParseList(arguments[i], i, &parsed)) return ListArguments();
    } else if (names[i] == "scalars" && arguments[i].isTensor()) {
      if (!IsTensorScalars(arguments[i], names[i], parsed.length)) return ListArguments();
      parsed.sliced.push_back(i);
    }
  }
  return parsed;
}

Route DecideRoute(const ListArguments& arguments, bool is_foreach, bool is_copy) {
  if (arguments.length < 2 || PositionsOverlap(arguments)) return Route::kWhole;
  if (LooksAlike(arguments)) return Route::kOriginal;
  return is_foreach && SlowForCertain(arguments, is_copy) ? Route::kSlow : Route::kWhole;
}

uint64_t BytesAt(const ListArguments& arguments, size_t index) {
  uint64_t bytes = 0;
  for (size_t list = 0; list < arguments.lists.size(); ++list) {
    const Tensor& t = arguments.lists[list][index];
    const auto same = [&](const std::vector<Tensor>& earlier) { return earlier[index].is_same(t); };
    if (std::none_of(arguments.lists.begin(), arguments.lists.begin() + static_cast<ptrdiff_t>(list), same)) {
      bytes += t.nbytes();
    }
  }
  return bytes;
}

c10::IValue Slice(const c10::IValue& value, size_t first, size_t last) {
  if (value.isTensor()) {
    return value.toTensor().slice(0, static_cast<int64_t>(first), static_cast<int64_t>(last));
  }
  c10::List<c10::IValue> whole = value.toList();
  c10::impl::GenericList part(whole.elementType());
  part.reserve(last - first);
  for (size_t i = first; i < last; ++i) part.push_back(whole.get(i));
  return part;
}

}  // namespace weir::plugin
