// `weir doctor`: what is there and what a job would get, line by line, each with what to do about it. Starts nothing but a
// Python that says where its torch and torch_weir lie, and changes nothing.
#ifndef WEIR_TOOLS_WEIR_COMMAND_DOCTOR_COMMAND_H_
#define WEIR_TOOLS_WEIR_COMMAND_DOCTOR_COMMAND_H_

#include <string>

#include "tools/weir_command/output.h"
#include "tools/weir_command/places.h"

namespace weir {

struct DoctorRequest {
  std::string python;   // the interpreter whose torch is looked at; empty: `python` or `python3` of PATH
  std::string job;      // process id of a running job; empty: none
  std::string gpu;      // over WEIR_GPU; empty: as the environment says
  std::string version;  // of this command
  OutputOptions output;
};

// Writes the report and returns the exit code: kExitOk when nothing is a problem, kExitUsage when an option is wrong,
// kExitUnavailable when a job could not run under Weir. Throws Failure for what `weir run` throws it for.
int Doctor(const DoctorRequest& request, const Places& places);

// What may leave the card with this torch minor ("2.11"), in one sentence (correctness rule R3).
std::string WhatMayLeave(const std::string& minor);

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_DOCTOR_COMMAND_H_
