#include "tools/weir_command/shared_cards.h"

#include <sys/random.h>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace weir {

std::string NewSharedName() {
  char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) return "";
  return absl::BytesToHexString(absl::string_view(bytes, sizeof bytes));
}

}  // namespace weir
