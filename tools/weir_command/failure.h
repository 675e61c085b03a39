// How a subcommand ends early: an exit code and the one line that says why. main() prints "weir SUBCOMMAND:
// TEXT".
#ifndef WEIR_TOOLS_WEIR_COMMAND_FAILURE_H_
#define WEIR_TOOLS_WEIR_COMMAND_FAILURE_H_

#include <stdexcept>
#include <string>

#include "tools/weir_command/exit_codes.h"

namespace weir {

class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_FAILURE_H_
