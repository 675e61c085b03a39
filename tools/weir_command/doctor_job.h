// Whether a process that runs has Weir in it, and by which way it came: for `weir doctor --job PID`.
#ifndef WEIR_TOOLS_WEIR_COMMAND_DOCTOR_JOB_H_
#define WEIR_TOOLS_WEIR_COMMAND_DOCTOR_JOB_H_

#include <string>

#include "tools/weir_command/doctor_report.h"

namespace weir {

// Reads /proc: what is mapped, and the environment that the process was started with. Throws Failure(kExitUsage) if `process` is no
// process of this user.
void LookAtJob(const std::string& process, DoctorReport& report);

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_DOCTOR_JOB_H_
