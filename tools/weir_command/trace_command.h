// `weir trace`: what a trace says, in figures. Reads the file and changes nothing.
#ifndef WEIR_TOOLS_WEIR_COMMAND_TRACE_COMMAND_H_
#define WEIR_TOOLS_WEIR_COMMAND_TRACE_COMMAND_H_

#include <string>

#include "tools/weir_command/output.h"

namespace weir {

struct TraceRequest {
  std::string file;
  OutputOptions output;
};

// Throws Failure(kExitFailed) where the file cannot be read, is no trace, is of another version, or is damaged.
int ShowTrace(const TraceRequest& request);

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_TRACE_COMMAND_H_
