// The one list of what the emulated GPU does not do. A test of such a thing is skipped there, with the reason, and
// not_emulated_test.cc asserts that the emulator refuses it by NOT_SUPPORTED and never pretends.
#ifndef WEIR_TESTS_CONFORMANCE_NOT_EMULATED_H_
#define WEIR_TESTS_CONFORMANCE_NOT_EMULATED_H_

#include "tests/conformance/device_under_test.h"

namespace weir::conformance {

enum class Lacks { kKernels, kHostFrames, kExport, kManaged, kIpc, kContexts, kReset };

struct NotEmulated {
  Lacks what;
  const char* name;
  const char* reason;
  CUresult (*attempt)();
};

inline void PrintTo(const NotEmulated& entry, std::ostream* out) { *out << entry.name; }
const std::vector<NotEmulated>& AllNotEmulated();
const char* WhyNotEmulated(Lacks what);

}  // namespace weir::conformance

#define SKIP_WHERE_EMULATED(what) \
  if (::weir::conformance::OnEmulator()) GTEST_SKIP() << ::weir::conformance::WhyNotEmulated(what)

#endif
