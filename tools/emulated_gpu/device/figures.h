// What a process has to tell of the emulated device, in a file, for `weir dryrun`: when it begins to use it, and when it ends.
//
// WEIR_EMULATED_FIGURES=FILE (%p is the process id): lines `key value`, sizes in bytes and times in ns of the virtual clock:
// device_name, ended (0 or 1), vram_bytes, context_bytes, card_peak_bytes (of all processes on the fullest card, contexts
// included), granted_beyond_card (requests), reports, steps, step_ns (the median), total_ns; `values` and the Verdict of
// value_reads.h, and for each place that read values `read`, 1 if they were floats, and the operator and place.
#ifndef WEIR_EMULATED_GPU_DEVICE_FIGURES_H_
#define WEIR_EMULATED_GPU_DEVICE_FIGURES_H_

namespace weir::emulated {

// Writes the file, if one is asked for. A file that cannot be written is a note.
void WriteFigures(bool ended);

}  // namespace weir::emulated

#endif
