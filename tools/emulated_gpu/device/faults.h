// A touch of device memory that is not mapped: a report on stderr, then the process dies as it would have.
// Faults at other addresses go to the handler that was there before us.
#ifndef WEIR_EMULATED_GPU_DEVICE_FAULTS_H_
#define WEIR_EMULATED_GPU_DEVICE_FAULTS_H_

namespace weir::emulated {

// Once, at first use.
void InstallFaultHandler();

}  // namespace weir::emulated

#endif
