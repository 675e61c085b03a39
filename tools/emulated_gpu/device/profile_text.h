// Profiles as text: lines of `key value # source`, and `base NAME` for the values of a known profile that the lines after it
// replace. Empty lines and lines that are only a comment are skipped. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_PROFILE_TEXT_H_
#define WEIR_EMULATED_GPU_DEVICE_PROFILE_TEXT_H_

#include <string>

#include "tools/emulated_gpu/device/profile.h"

namespace weir::emulated {

// The profile that `name` means: a known one, or the file with that path (a name with a slash is one). On failure
// `mistake` says what is wrong in one line: the known profiles; or the file, the line and what was expected there.
bool FindProfile(const std::string& name, Profile* profile, std::string* mistake);

// `text` as the profile `name`; `file` is how mistakes call it.
bool ParseProfile(const std::string& text, const std::string& name, const std::string& file, Profile* profile,
                  std::string* mistake);

// known_profiles.cc: the text of one of the known profiles, null when there is none of that name.
const char* KnownProfile(const std::string& name);
std::string KnownProfileNames();  // with spaces between

}  // namespace weir::emulated

#endif
