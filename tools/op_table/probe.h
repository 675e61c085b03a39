// The probe of the op table: a library that Python loads by ctypes. It watches what each aten operator does to
// its arguments while samples run, and repeats their calls with other arguments.
//
// Works on torch's own CUDA allocator, with kernels that do nothing. Call from one thread.
#ifndef WEIR_TOOLS_OP_TABLE_PROBE_H_
#define WEIR_TOOLS_OP_TABLE_PROBE_H_

#include <string>

extern "C" {

// Once, after CUDA has started. `current`: 256 bytes in which the operator being called is kept, so that a
// process that dies says where. Returns what sees writes: "materialize hook" or "copy-on-write" (write_watch.h).
const char* weir_probe_start(char* current);

// Forgets everything measured and kept.
void weir_probe_reset();

// Repeats the calls kept since the reset: as in-place and out= variants of the same operator, which are
// measured too; then with the throwing flag on one argument after the other. `skip`: names ("aten::add.out"),
// separated by blanks, that are not called.
void weir_probe_replay(const char* skip);

// The rows measured since the reset, one per line; valid until the next call. Columns, separated by tabs:
// name, runs, given, fired, silent, tried, refused, inner, layouts (lists by comma), temporaries, their bytes, kept,
// their bytes, share.
const char* weir_probe_rows();
}

namespace weir::op_table {

void StartObserving();
void SetCurrentOp(const std::string& name);

}  // namespace weir::op_table

#endif  // WEIR_TOOLS_OP_TABLE_PROBE_H_
