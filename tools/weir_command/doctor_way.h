// The way by which a job that is started from this environment, with this Python, gets Weir: for `weir doctor`. What a script
// does by itself (torch_weir.install(), CUDAPluggableAllocator) shows only while it runs: torch_weir.status().
#ifndef WEIR_TOOLS_WEIR_COMMAND_DOCTOR_WAY_H_
#define WEIR_TOOLS_WEIR_COMMAND_DOCTOR_WAY_H_

#include <string>

#include "allocator/base/options.h"
#include "tools/weir_command/doctor_report.h"
#include "tools/weir_command/places.h"

namespace weir {

// `python`: a path, empty if there is none; `texts`: the environment's; `version`: of this command. Starts the Python, which imports
// the package torch_weir, but not torch.
void LookAtWay(const std::string& python, const OptionTexts& texts, const std::string& version,
               const Places& places, DoctorReport& report);

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_DOCTOR_WAY_H_
