#include "tools/weir_command/output.h"

#include <errno.h>
#include <string.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/weir_command/failure.h"

namespace weir {

void OutputOptions::AddTo(CLI::App* command) {
  command->add_flag("--json", json, "Print the result as JSON.");
  command->add_option("-o", file, "Write the result to this file.")->type_name("FILE");
}

void OutputOptions::Write(const std::string& text) const {
  FILE* out = file.empty() ? stdout : fopen(file.c_str(), "w");
  const auto fail = [this] {
    throw Failure(kExitFailed, "cannot write " + (file.empty() ? "stdout" : file) + ": " + strerror(errno));
  };
  if (out == nullptr) fail();
  const bool written = fwrite(text.data(), 1, text.size(), out) == text.size() && fflush(out) == 0;
  if (!written) fail();
  if (out != stdout && fclose(out) != 0) fail();
}

}  // namespace weir
