// From a policy's name (WEIR_POLICY) to the policy. The only switch on the name.
#ifndef WEIR_POLICIES_REGISTRY_H_
#define WEIR_POLICIES_REGISTRY_H_

#include <memory>
#include <string_view>

#include "policies/policy.h"

namespace weir {

// Null for an unknown name (the option table refuses those first). `auto` is `lru` as long as there is no better.
std::unique_ptr<Policy> MakePolicy(std::string_view name);

}  // namespace weir

#endif  // WEIR_POLICIES_REGISTRY_H_
