#include "tools/emulated_gpu/device/profile_text.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace weir::emulated {
namespace {

// Where a key's value goes: one of these is set.
struct Key {
  const char* name;
  double Costs::*cost = nullptr;
  int Profile::*number = nullptr;
  size_t Profile::*size = nullptr;
  size_t unit = 1;  // of a size, in bytes
};

#define COST(field) \
  { #field, &Costs::field }
constexpr Key kKeys[] = {
    {"compute_major", nullptr, &Profile::major},
    {"compute_minor", nullptr, &Profile::minor},
    {"vram_mib", nullptr, nullptr, &Profile::vram_mib},
    {"multiprocessors", nullptr, &Profile::multiprocessors},
    {"l2_mib", nullptr, nullptr, &Profile::l2_bytes, 1 << 20},
    {"shared_per_multiprocessor_kib", nullptr, nullptr, &Profile::shared_per_multiprocessor, 1 << 10},
    {"shared_per_block_kib", nullptr, nullptr, &Profile::shared_per_block_optin, 1 << 10},
    {"threads_per_multiprocessor", nullptr, &Profile::threads_per_multiprocessor},
    {"blocks_per_multiprocessor", nullptr, &Profile::blocks_per_multiprocessor},
    {"memory_bus_bits", nullptr, &Profile::memory_bus_bits},
    {"clock_khz", nullptr, &Profile::clock_khz},
    {"memory_clock_khz", nullptr, &Profile::memory_clock_khz},
    {"copy_engines", nullptr, &Profile::copy_engines},
    COST(fp64_tflops),
    COST(fp32_tflops),
    COST(tf32_tflops),
    COST(bf16_tflops),
    COST(fp16_tflops),
    COST(fp8_tflops),
    COST(int8_tops),
    COST(memory_gbps),
    COST(kernel_us),
    COST(h2d_gbps),
    COST(d2h_gbps),
    COST(h2d_both_gbps),
    COST(d2h_both_gbps),
    COST(pageable_h2d_gbps),
    COST(pageable_d2h_gbps),
    COST(copy_us),
    COST(launch_us),
    COST(copy_submit_us),
    COST(event_us),
    COST(call_us),
    COST(start_us),
    COST(op_us),
    COST(nested_op_us),
    COST(vmm_create_us),
    COST(vmm_map_us),
    COST(vmm_access_us),
    COST(vmm_unmap_us),
    COST(vmm_release_us),
    COST(vmm_reserve_us),
    COST(malloc_us),
    COST(free_us),
    COST(pin_us_per_mib),
    COST(host_ram_gib),
    COST(host_memory_gbps),
    COST(nvme_read_gbps),
    COST(nvme_write_gbps),
    COST(nvme_us),
    COST(torch_malloc_us),
    COST(torch_free_us),
    COST(weir_op_us),
    COST(weir_event_us),
    COST(weir_touch_us),
    COST(weir_malloc_us),
    COST(weir_free_us),
    COST(weir_page_in_us),
    COST(weir_candidate_us),
    COST(weir_plan_us),
    COST(weir_mapper_us),
};
#undef COST
constexpr size_t kKeyCount = sizeof kKeys / sizeof kKeys[0];
constexpr size_t kDeviceName = kKeyCount;  // the one key whose value is a text

// Rates divide, so they are never 0; times may be.
bool MayBeZero(const Key& key) {
  return std::strstr(key.name, "_us") != nullptr || key.number == &Profile::minor;
}

size_t KeyNamed(const std::string& name) {
  if (name == "device_name") return kDeviceName;
  for (size_t i = 0; i < kKeyCount; ++i) {
    if (name == kKeys[i].name) return i;
  }
  return kKeyCount + 1;
}

class Reader {
 public:
  Reader(std::string file, Profile* profile, std::string* mistake)
      : file_(std::move(file)), profile_(profile), mistake_(mistake), seen_(kKeyCount + 1) {}

  // The lines of one text; `known`: of one of ours.
  bool Read(const std::string& text, bool known) {
    std::istringstream lines(text);
    std::vector<int> lines_of(kKeyCount + 1);  // of this text, to find a key that is there twice
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      std::istringstream words(line.substr(0, line.find('#')));
      std::string key, value;
      if (!(words >> key)) continue;
      std::getline(words >> std::ws, value);
      while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back()))) value.pop_back();
      if (!ReadLine(number, key, value, lines_of, known)) return false;
    }
    return true;
  }

  bool IsComplete() {
    std::string missing;
    for (size_t i = 0; i <= kKeyCount; ++i) {
      if (!seen_[i]) missing += std::string(" ") + (i == kDeviceName ? "device_name" : kKeys[i].name);
    }
    if (missing.empty()) return true;
    *mistake_ = file_ + ": the profile lacks" + missing +
                "; give each a line `key value # source`, or start with `base " + "NAME`, one of " +
                KnownProfileNames();
    return false;
  }

 private:
  bool Expected(int line, const std::string& what) {
    *mistake_ = file_ + ":" + std::to_string(line) + ": expected " + what;
    return false;
  }

  bool ReadLine(int line, const std::string& key, const std::string& value, std::vector<int>& lines_of,
                bool known) {
    if (key == "base" && !known) return ReadBase(line, value);
    const size_t index = KeyNamed(key);
    if (index > kKeyCount) return Expected(line, "`base` or a key of a profile, found \"" + key + "\"");
    if (value.empty()) return Expected(line, "`" + key + " VALUE # SOURCE`, found no value");
    if (lines_of[index] != 0) {
      return Expected(
          line, "each key once, \"" + key + "\" is in line " + std::to_string(lines_of[index]) + " too");
    }
    lines_of[index] = line;
    seen_[index] = any_ = true;
    if (index == kDeviceName) {
      profile_->device_name = value;
      return true;
    }
    return ReadNumber(line, kKeys[index], value);
  }

  bool ReadBase(int line, const std::string& name) {
    const char* text = KnownProfile(name);
    if (text == nullptr)
      return Expected(line, "`base` and one of " + KnownProfileNames() + ", found \"" + name + "\"");
    if (any_) return Expected(line, "`base` once, before all other keys");
    return Read(text, /*known=*/true);
  }

  bool ReadNumber(int line, const Key& key, const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool number = end != text.c_str() && *end == '\0' && std::isfinite(value) && value <= 1e15;
    if (!number || value < 0 || (value == 0 && !MayBeZero(key))) {
      return Expected(line, std::string(MayBeZero(key) ? "a number, 0 or more" : "a number above 0") +
                                " for " + key.name + ", found \"" + text + "\"");
    }
    if (key.cost != nullptr) {
      profile_->costs.*key.cost = value;
      return true;
    }
    if (value != std::floor(value) || value > 2147483647) {
      return Expected(line, std::string("a whole number for ") + key.name + ", found \"" + text + "\"");
    }
    if (key.number != nullptr) profile_->*key.number = static_cast<int>(value);
    if (key.size != nullptr) profile_->*key.size = static_cast<size_t>(value) * key.unit;
    return true;
  }

  const std::string file_;
  Profile* const profile_;
  std::string* const mistake_;
  std::vector<bool> seen_;
  bool any_ = false;
};

}  // namespace

bool ParseProfile(const std::string& text, const std::string& name, const std::string& file, Profile* profile,
                  std::string* mistake) {
  *profile = {};
  Reader reader(file, profile, mistake);
  profile->name = name;
  return reader.Read(text, /*known=*/false) && reader.IsComplete();
}

bool FindProfile(const std::string& name, Profile* profile, std::string* mistake) {
  if (KnownProfile(name) != nullptr) {
    return ParseProfile("base " + name, name, name, profile, mistake);
  }
  if (name.find('/') == std::string::npos) {
    *mistake = "unknown profile; known are " + KnownProfileNames() + ", and files by a path with a slash";
    return false;
  }
  errno = 0;
  std::ifstream file(name);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    *mistake =
        name + ": cannot be read" + (errno == 0 ? std::string() : std::string(": ") + std::strerror(errno));
    return false;
  }
  const std::string file_name = name.substr(name.rfind('/') + 1);
  return ParseProfile(text.str(), file_name, name, profile, mistake);
}

}  // namespace weir::emulated
