// Runs a short program and takes what it prints.
#ifndef WEIR_TOOLS_WEIR_COMMAND_CAPTURED_OUTPUT_H_
#define WEIR_TOOLS_WEIR_COMMAND_CAPTURED_OUTPUT_H_

#include <optional>
#include <string>
#include <vector>

namespace weir {

// The standard output of `words` (the first one is looked up in PATH), run with no input and no error output.
// Empty if it cannot be started or does not end with exit code 0.
std::optional<std::string> CapturedOutput(const std::vector<std::string>& words);

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_CAPTURED_OUTPUT_H_
