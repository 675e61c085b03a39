#include "pytorch_plugin/history_cause.h"

#include <vector>

namespace weir::plugin {
namespace {

struct ThreadNotes {
  std::string metadata;
  std::vector<std::string> compiling;
};

ThreadNotes& Notes() {
  static thread_local auto* notes =
      new ThreadNotes;  // never freed: blocks are freed in thread-local destructors too
  return *notes;
}

// Torch's own allocator writes this where nothing is compiled.
const std::string& NotCompiling() {
  static const auto* text = new std::string("N/A");
  return *text;
}

}  // namespace

void SetUserMetadata(const std::string& metadata) { Notes().metadata = metadata; }
const std::string& UserMetadata() { return Notes().metadata; }
void PushCompileContext(const std::string& context) { Notes().compiling.push_back(context); }

void PopCompileContext() {
  if (!Notes().compiling.empty()) Notes().compiling.pop_back();
}

const std::string& CompileContext() {
  return Notes().compiling.empty() ? NotCompiling() : Notes().compiling.back();
}

}  // namespace weir::plugin
