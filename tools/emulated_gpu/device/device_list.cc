#include "tools/emulated_gpu/device/device_list.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/attributes.h"
#include "tools/emulated_gpu/device/profile_text.h"

namespace weir::emulated {
namespace {

bool AllDigits(const std::string& text) {
  return !text.empty() && text.size() < 6 && text.find_first_not_of("0123456789") == std::string::npos;
}

// -1: no device.
int DeviceOf(const std::string& entry, int count) {
  if (AllDigits(entry)) {
    const int device = std::stoi(entry);
    return device < count ? device : -1;
  }
  if (entry.rfind("GPU-", 0) != 0) return -1;
  int found = -1;
  for (int device = 0; device < count; ++device) {
    if (UuidText(device).rfind(entry, 0) != 0) continue;
    if (found >= 0) return -1;  // the beginning of several
    found = device;
  }
  return found;
}

}  // namespace

bool FindDevices(const std::string& name, Profile* profile, int* count, std::string* mistake) {
  *count = 1;
  const size_t cross = name.rfind('x');
  const bool counts = KnownProfile(name) == nullptr &&  // rtx4090 is one card
                      cross != std::string::npos && cross != 0 && AllDigits(name.substr(cross + 1));
  const bool file = name.find('/') != std::string::npos && access(name.c_str(), F_OK) == 0;
  if (!counts || file) return FindProfile(name, profile, mistake);
  *count = std::stoi(name.substr(cross + 1));
  if (*count < 1 || *count > kMostDevices) {
    *mistake = name + ": there can be 1 to " + std::to_string(kMostDevices) + " devices";
    return false;
  }
  return FindProfile(name.substr(0, cross), profile, mistake);
}

std::vector<int> VisibleDevices(const char* text, int count) {
  std::vector<int> visible;
  if (text == nullptr) {
    for (int device = 0; device < count; ++device) visible.push_back(device);
    return visible;
  }
  std::istringstream list(text);
  std::string entry;
  while (std::getline(list, entry, ',')) {
    entry.erase(0, entry.find_first_not_of(" \t"));
    entry.erase(entry.find_last_not_of(" \t") + 1);
    const int device = DeviceOf(entry, count);
    if (device < 0) break;
    if (std::find(visible.begin(), visible.end(), device) != visible.end()) return {};
    visible.push_back(device);
  }
  return visible;
}

std::string UuidText(int device) {
  char bytes[16], text[48] = "GPU-";
  DeviceUuid(bytes, device);
  size_t at = 4;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text[at++] = '-';
    at += static_cast<size_t>(
        std::snprintf(text + at, sizeof text - at, "%02x", static_cast<unsigned char>(bytes[i])));
  }
  return text;
}

}  // namespace weir::emulated

// For `weir run --gpu emulated:FILE`: 0 if `name` means devices, else 1 and what is wrong.
extern "C" __attribute__((visibility("default"))) int weir_emulated_check_profile(const char* name,
                                                                                  char* text, size_t room) {
  weir::emulated::Profile profile;
  std::string mistake;
  int count = 0;
  const bool found = weir::emulated::FindDevices(name, &profile, &count, &mistake);
  if (room > 0) text[mistake.copy(text, room - 1)] = '\0';
  return found ? 0 : 1;
}
