// Which arguments an operator writes (R2): the audited list, made from op_tables/MAJOR_MINOR.txt when the plugin
// is built.
//
// Any thread. Pure function.
#ifndef WEIR_PYTORCH_PLUGIN_OP_WRITES_H_
#define WEIR_PYTORCH_PLUGIN_OP_WRITES_H_

#include <ATen/core/function_schema.h>

#include <vector>

#include "pytorch_plugin/thread_state.h"

namespace weir::plugin {

// Per argument. kNever is said of audited operators only; every argument of any other one may be written.
std::vector<Write> WritesOf(const c10::FunctionSchema& schema);

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_OP_WRITES_H_
