#include "allocator/base/torch_conf.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "allocator/base/options.h"

namespace weir {
namespace {

// At commas outside of brackets: a value may be a list.
std::vector<absl::string_view> Entries(absl::string_view text) {
  std::vector<absl::string_view> entries;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    entries.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  return entries;
}

bool IsFollowed(absl::string_view key) {
  return key == "backend" || key == "expandable_segments" || absl::StartsWith(key, "pinned_");
}

}  // namespace

TorchConf ReadTorchConf(absl::string_view text) {
  TorchConf conf;
  for (absl::string_view entry : Entries(text)) {
    const size_t colon = entry.find(':');
    if (colon == absl::string_view::npos) continue;
    const absl::string_view key = absl::StripAsciiWhitespace(entry.substr(0, colon));
    if (key == "per_process_memory_fraction") {
      double fraction = 1.0;
      if (absl::SimpleAtod(absl::StripAsciiWhitespace(entry.substr(colon + 1)), &fraction) && fraction >= 0 &&
          fraction <= 1) {
        conf.fraction = fraction;
      }
    } else if (!IsFollowed(key)) {
      conf.without_effect.emplace_back(key);
    }
  }
  return conf;
}

std::string TorchConfText() {
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    if (std::optional<std::string> text = EnvironmentText(name); text && !text->empty())
      return *std::move(text);
  }
  return "";
}

}  // namespace weir
