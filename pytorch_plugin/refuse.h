// How the plugin says no.
#ifndef WEIR_PYTORCH_PLUGIN_REFUSE_H_
#define WEIR_PYTORCH_PLUGIN_REFUSE_H_

#include <c10/util/Exception.h>

namespace weir::plugin {

// Throws NotImplementedError that names what is missing and the way out.
[[noreturn]] inline void Refuse(const char* feature) {
  C10_THROW_ERROR(NotImplementedError, std::string("Weir does not support ") + feature +
                                           " yet; WEIR_DISABLE=1 runs the job without Weir");
}

// Weir cannot work here: one line, and the job goes on with torch's own allocator. Under `weir run`, which
// sets WEIR_REQUIRED=1, the process ends with exit code 4 instead.
void RefuseJobIfRequired(const char* reason);

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_REFUSE_H_
