// Which devices there are, from the texts of the environment. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_DEVICE_LIST_H_
#define WEIR_EMULATED_GPU_DEVICE_DEVICE_LIST_H_

#include <string>
#include <vector>

#include "tools/emulated_gpu/device/profile.h"

namespace weir::emulated {

// `PROFILE` is one device of that profile, `PROFILExN` is N of them; a file with the whole name comes first. On failure
// `mistake` is one line.
bool FindDevices(const std::string& name, Profile* profile, int* count, std::string* mistake);

// The devices that CUDA shows of `count`, by the text of CUDA_VISIBLE_DEVICES, null when it is not set: numbers or beginnings
// of "GPU-UUID". The list ends before an entry that means none; one that is named twice leaves no device.
std::vector<int> VisibleDevices(const char* text, int count);

// "GPU-..." of a physical device.
std::string UuidText(int device);

}  // namespace weir::emulated

#endif
