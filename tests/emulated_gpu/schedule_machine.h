// Runs a program of schedule_program.h on the emulated GPU, through the driver's entry points. Everything is made anew for
// each run and given back. Kernels are the test's own code on the mapped bytes, announced to the emulator as its CPU kernels
// announce themselves.
#ifndef WEIR_TESTS_EMULATED_GPU_SCHEDULE_MACHINE_H_
#define WEIR_TESTS_EMULATED_GPU_SCHEDULE_MACHINE_H_

#include <cstdint>
#include <vector>

#include "tests/emulated_gpu/schedule_program.h"

namespace weir::emulated {

struct Outcome {
  std::vector<std::vector<uint8_t>> buffers;
  uint64_t reports = 0;
};

// `laziness` is the emulator's seed. A context is current.
Outcome RunOnEmulator(const Program& program, uint64_t laziness);

}  // namespace weir::emulated

#endif
