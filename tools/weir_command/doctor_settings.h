// Settings of the environment that mean nothing, or not what they seem to: left over, without effect, or against each other. For
// `weir doctor`.
#ifndef WEIR_TOOLS_WEIR_COMMAND_DOCTOR_SETTINGS_H_
#define WEIR_TOOLS_WEIR_COMMAND_DOCTOR_SETTINGS_H_

#include <vector>

#include "allocator/base/options.h"
#include "allocator/base/units.h"
#include "tools/weir_command/doctor_report.h"

namespace weir {

// Every option that is set, with its verdict. The options in force, defaults for those that are wrong.
Options LookAtOptions(const OptionTexts& texts, DoctorReport& report);

// What `weir run` sets for its job and somebody has kept, options of a GPU that is not the one in force, and PYTORCH_ALLOC_CONF.
void LookAtStaleSettings(const OptionTexts& texts, const Options& options, DoctorReport& report);

// The cap of each device of these totals, where WEIR_VRAM gives one.
void LookAtCaps(const Options& options, const std::vector<Bytes>& totals, DoctorReport& report);

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_DOCTOR_SETTINGS_H_
