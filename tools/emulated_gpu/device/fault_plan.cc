#include "tools/emulated_gpu/device/fault_plan.h"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tools/emulated_gpu/device/profile.h"

namespace weir::emulated {
namespace {

using Words = std::vector<std::string>;

Words Split(const std::string& line) {
  std::istringstream text(line.substr(0, line.find('#')));
  Words words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

bool ReadNumber(const std::string& text, uint64_t* value) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return false;
  *value = std::strtoull(text.c_str(), nullptr, 10);
  return true;
}

bool ReadCode(const std::string& text, Status* code) {
  for (int number = 1; number < 1000; ++number) {
    const char* name = nullptr;
    if (cuGetErrorName(static_cast<CUresult>(number), &name) != CUDA_SUCCESS || name == nullptr) continue;
    if (name != "CUDA_ERROR_" + text) continue;
    *code = static_cast<Status>(number);
    return true;
  }
  return false;
}

// Whether this library has such an entry point.
bool IsEntryPoint(const std::string& name) {
  if (name.rfind("cu", 0) != 0 || name.rfind("cublas", 0) == 0) return false;
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&IsEntryPoint), &self) == 0) return false;
  void* library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const bool found = dlsym(library, name.c_str()) != nullptr;
  dlclose(library);
  return found;
}

// The rest of a rule behind `CALL N CODE`. Returns what was expected.
std::string ReadRepeat(const Words& words, FaultRule* rule) {
  size_t at = 3;
  std::string how = "once";
  if (at < words.size() && words[at] != "after") how = words[at++];
  if (at < words.size() && words[at] == "after") {
    if (at + 2 != words.size() || !IsEntryPoint(words[at + 1]))
      return "`after` and the name of one entry point";
    rule->after = BaseName(words[at + 1]);
    at += 2;
  }
  if (at != words.size()) return "once, forever or `after` behind the code";
  if (how == "each" && !rule->after.empty()) {
    rule->repeat = FaultRule::Repeat::kEach;
  } else if (how == "forever" && rule->after.empty()) {
    rule->repeat = FaultRule::Repeat::kForever;
  } else if (how != "once") {
    return rule->after.empty() ? "once or forever" : "once or each, before `after`";
  }
  return "";
}

std::string ReadRule(const Words& words, FaultPlan* plan) {
  FaultRule rule;
  if (!IsEntryPoint(words[0])) return "an entry point (cuMemCreate ...), memory_info, capacity or teardown";
  rule.call = BaseName(words[0]);
  if (words.size() < 2 || !ReadNumber(words[1], &rule.nth) || rule.nth == 0)
    return "a number from 1 up behind the call";
  if (words.size() < 3 || !ReadCode(words[2], &rule.code))
    return "an error such as OUT_OF_MEMORY behind the number";
  const std::string expected = ReadRepeat(words, &rule);
  if (!expected.empty()) return expected;
  for (const std::string& word : words) rule.text += (rule.text.empty() ? "" : " ") + word;
  plan->rules.push_back(rule);
  return "";
}

std::string ReadLine(const Words& words, FaultPlan* plan) {
  if (words[0] == "memory_info") {
    FaultPlan::MemoryInfo info{};
    if (words.size() == 3) info = {words[1] == "0" ? 0 : ParseSize(words[1]), ParseSize(words[2])};
    if (words.size() != 3 || info.total == 0 || (info.free == 0 && words[1] != "0"))
      return "two sizes, free and total";
    plan->memory_info = info;
    return "";
  }
  if (words[0] == "capacity") {
    plan->capacity = words.size() == 2 ? ParseSize(words[1]) : 0;
    return plan->capacity == 0 ? "one size such as 2GiB" : "";
  }
  if (words[0] == "teardown") {
    plan->teardown = true;
    return words.size() == 1 ? "" : "nothing behind teardown";
  }
  return ReadRule(words, plan);
}

std::string ReadSeed(const std::string& spec, FaultPlan* plan) {
  const std::string text = spec.substr(5);
  const size_t comma = text.find(',');
  SeededFaults seeded;
  bool good = ReadNumber(text.substr(0, comma), &seeded.seed);
  if (comma != std::string::npos) {
    char* end = nullptr;
    const std::string rate = text.substr(comma + 1);
    seeded.rate = std::strtod(rate.c_str(), &end);
    good = good && !rate.empty() && *end == '\0' && seeded.rate >= 0 && seeded.rate <= 1;
  }
  if (!good) return "faults " + spec + ": expected seed:NUMBER or seed:NUMBER,RATE with a rate from 0 to 1";
  plan->seeded = seeded;
  return "";
}

}  // namespace

std::string BaseName(const std::string& entry_point) {
  const size_t end = entry_point.size();
  const bool versioned = end > 3 && entry_point[end - 3] == '_' && entry_point[end - 2] == 'v';
  return versioned ? entry_point.substr(0, end - 3) : entry_point;
}

std::string ReadFaultPlan(const std::string& spec, FaultPlan* plan) {
  if (spec.rfind("seed:", 0) == 0) return ReadSeed(spec, plan);
  std::ifstream file(spec);
  if (!file) return "faults " + spec + ": expected seed:NUMBER or a file that can be read";
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const Words words = Split(line);
    if (words.empty()) continue;
    const std::string expected = ReadLine(words, plan);
    if (!expected.empty()) return spec + ":" + std::to_string(number) + ": expected " + expected;
  }
  if (file.bad() || number == 0) return "faults " + spec + ": expected seed:NUMBER or a file with rules";
  return "";
}

}  // namespace weir::emulated
