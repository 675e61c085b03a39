#include "policies/registry.h"

#include "policies/ordered_policy.h"

namespace weir {

std::unique_ptr<Policy> MakePolicy(std::string_view name) {
  if (name == "lru" || name == "auto") return std::make_unique<LruPolicy>();
#ifdef WEIR_TEST_POLICIES
  if (name == "youngest") return std::make_unique<YoungestPolicy>();
#endif
  return nullptr;
}

}  // namespace weir
