// The test build's side of allocator/base/safeguards.h.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "allocator/base/safeguards.h"

namespace weir {
namespace {

constexpr int kNone = -1;

int Chosen() {
  const char* name = std::getenv("TEST_WITHOUT");
  if (name == nullptr) return kNone;
#define WEIR_SAFEGUARD_CHOICE(known, rule) \
  if (std::string_view(name) == #known) return static_cast<int>(Safeguard::k##known);
  WEIR_SAFEGUARDS(WEIR_SAFEGUARD_CHOICE)
  WEIR_PLUGIN_SAFEGUARDS(WEIR_SAFEGUARD_CHOICE)
#undef WEIR_SAFEGUARD_CHOICE
  std::fprintf(stderr, "TEST_WITHOUT=%s names no safeguard\n", name);
  std::abort();
}

}  // namespace

bool Without(Safeguard safeguard) {
  static const int chosen = Chosen();
  return static_cast<int>(safeguard) == chosen;
}

}  // namespace weir
