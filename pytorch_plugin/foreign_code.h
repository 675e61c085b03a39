// R3: on torch minors where an access that no op announces must not exist (kOnlyKnownConsumers in torch_version.h), who
// may use a tensor that leaves, and what in the process could reach one unseen.
//
// Foreign code is
//   - a loaded library, or the program, that links torch or CUDA and is neither torch's, NVIDIA's nor Weir's: extensions,
//     CuPy, launchers that Triton builds, what is compiled ahead of time, a C++ program on libtorch;
//   - torch's compiler for CUDA (Inductor), noticed in Python when it is imported;
//   - an operator outside torch's own namespaces.
// Once any was seen nothing leaves for the rest of the process.
//
// Any thread, with or without the GIL, no Weir lock held.
#ifndef WEIR_PYTORCH_PLUGIN_FOREIGN_CODE_H_
#define WEIR_PYTORCH_PLUGIN_FOREIGN_CODE_H_

#include <string_view>

namespace weir::plugin {

// An aten op that is done with its arguments when it ends: what it was given may leave. The argument of anything else is
// pinned for good.
bool IsKnownConsumer(std::string_view op);

// An operator ran for the first time.
void NoteOperator(std::string_view op);

// Something foreign was seen; `what` says what, and is copied. The first one stays.
void NoteForeignCode(std::string_view what);

// Why nothing may leave any more, in words that live for ever; nullptr: nothing foreign was seen. Looks at the libraries
// that were loaded since the last call; cheap while there are none.
const char* ForeignCode();

}  // namespace weir::plugin

extern "C" {
// For Python: NoteForeignCode.
void weir_plugin_note_foreign(const char* what);
}

#endif  // WEIR_PYTORCH_PLUGIN_FOREIGN_CODE_H_
