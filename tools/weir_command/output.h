// Where a subcommand's result goes: stdout or the file of -o, as text or as JSON.
#ifndef WEIR_TOOLS_WEIR_COMMAND_OUTPUT_H_
#define WEIR_TOOLS_WEIR_COMMAND_OUTPUT_H_

#include <string>

namespace CLI {
class App;
}

namespace weir {

struct OutputOptions {
  bool json = false;
  std::string file;  // empty: stdout

  // Adds --json and -o to a subcommand.
  void AddTo(CLI::App* command);
  // Writes `text`. Throws Failure(kExitFailed) naming the file if it cannot be written.
  void Write(const std::string& text) const;
};

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_OUTPUT_H_
