// `weir config`: every option with its value, where that comes from, and its default. Changes nothing.
#ifndef WEIR_TOOLS_WEIR_COMMAND_CONFIG_COMMAND_H_
#define WEIR_TOOLS_WEIR_COMMAND_CONFIG_COMMAND_H_

#include <string>

#include "allocator/base/options.h"

namespace weir {

std::string ConfigAsText(const OptionTexts& texts);
std::string ConfigAsJson(const OptionTexts& texts);

// docs/options.md.
std::string OptionsPage();

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_CONFIG_COMMAND_H_
