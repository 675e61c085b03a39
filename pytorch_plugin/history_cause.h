// Why something happens to memory, as torch's history tells it: the stack of the thread that asked, the program it compiles
// and the note it has set for itself.
//
// Notes and compile contexts are the calling thread's own. A context is an object of torch: making one may take the GIL, so
// no lock of Weir is held then, nor when the last reference goes (R8).
#ifndef WEIR_PYTORCH_PLUGIN_HISTORY_CAUSE_H_
#define WEIR_PYTORCH_PLUGIN_HISTORY_CAUSE_H_

#include <c10/core/CachingDeviceAllocator.h>

#include <memory>
#include <string>

namespace weir::plugin {

using Context = std::shared_ptr<c10::GatheredContext>;

struct Cause {
  Context context;              // null: not wanted at this level
  std::string compile_context;  // "N/A": nothing is compiled
  std::string user_metadata;
};

// The calling thread's note, and the stack of its compile contexts.
void SetUserMetadata(const std::string& metadata);
const std::string& UserMetadata();
void PushCompileContext(const std::string& context);
void PopCompileContext();
const std::string& CompileContext();

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_HISTORY_CAUSE_H_
