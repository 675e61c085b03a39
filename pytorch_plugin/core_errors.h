// How the core's statuses become errors of the C ABI.
#ifndef WEIR_PYTORCH_PLUGIN_CORE_ERRORS_H_
#define WEIR_PYTORCH_PLUGIN_CORE_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/runtime.h"

namespace weir {

// Fill `*error` (null: nothing) and return its code.
int32_t Fail(WeirError* error, int32_t code, absl::string_view text);
int32_t Fail(WeirError* error, const absl::Status& status);
// As above, with torch's sentence in front of an out-of-memory reason, which is counted.
int32_t FailOn(Device& device, Bytes requested, const absl::Status& status, WeirError* error);

}  // namespace weir

#endif  // WEIR_PYTORCH_PLUGIN_CORE_ERRORS_H_
