// How a call of a list op may be cut (R14).
//
// torch decides once per call whether the fast kernel applies to the whole list; one odd tensor sends all of
// them down the slow path, whose rounding differs. So a list is cut only where the verdict on every piece is
// the verdict on the whole:
//   - all positions look alike (same types, layouts, strides against the first list, same kind of scalar):
//   every
//     piece takes the route of the whole, and an op that raises raises at the first piece, before any update;
//   - a _foreach_ op whose whole list is slow for certain: the slow kernel runs on every piece.
// Everything else runs in one call. Any thread.
#ifndef WEIR_PYTORCH_PLUGIN_LIST_ROUTE_H_
#define WEIR_PYTORCH_PLUGIN_LIST_ROUTE_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weir::plugin {

enum class Route {
  kWhole,     // one call of the original on the whole list
  kOriginal,  // the original, piece by piece
  kSlow,      // the slow kernel, piece by piece
};

// The arguments of one call, seen by position. Built once per call; holds references to the tensors.
struct ListArguments {
  std::vector<std::vector<at::Tensor>> lists;  // the full-length tensor lists
  std::vector<size_t> sliced;                  // argument numbers that are cut with the lists
  std::vector<at::Scalar> scalars;             // of a ScalarList, one per position
  size_t length = 0;                           // positions; 0: these arguments cannot be cut
};

ListArguments ParseListArguments(c10::ArrayRef<c10::IValue> arguments, const std::vector<std::string>& names);

// `is_foreach`: a slow kernel exists. `is_copy`: _foreach_copy_, whose lists may differ in type.
Route DecideRoute(const ListArguments& arguments, bool is_foreach, bool is_copy);

// Bytes that position `index` needs resident at once.
uint64_t BytesAt(const ListArguments& arguments, size_t index);

// The part [first, last) of an argument named in ListArguments::sliced.
c10::IValue Slice(const c10::IValue& value, size_t first, size_t last);

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_LIST_ROUTE_H_
