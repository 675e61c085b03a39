// The name under which the processes of one `weir run` keep what they use of the emulated cards.
#ifndef WEIR_TOOLS_WEIR_COMMAND_SHARED_CARDS_H_
#define WEIR_TOOLS_WEIR_COMMAND_SHARED_CARDS_H_

#include <string>

namespace weir {

// The value of WEIR_EMULATED_SHARED: 32 random hexadecimal digits, so that nobody can guess it (the emulator's process_table.h).
// Empty when the system gives no random bytes: then each process has the cards to itself.
std::string NewSharedName();

}  // namespace weir

#endif
