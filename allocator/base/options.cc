#include "allocator/base/options.h"

#include <stdlib.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/option_table.h"

extern char** environ;

namespace weir {
namespace {

// Levenshtein distance: how many letters to insert, drop or replace.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string NearestOption(absl::string_view name) {
  constexpr size_t kPrefix = 5;  // WEIR_
  std::string nearest;
  size_t least = 1 + std::max<size_t>(2, (name.size() - kPrefix) / 3);  // farther is no typing slip
  for (const OptionRow& row : OptionTable()) {
    const size_t distance = EditDistance(name, row.name);
    if (row.internal || distance >= least) continue;
    least = distance;
    nearest = row.name;
  }
  return nearest;
}

}  // namespace

VramLimit VramSpec::ForDevice(int device) const {
  const auto found = by_device.find(device);
  return found != by_device.end() ? found->second : every_device;
}

std::string UnknownOption::Message() const {
  if (suggestion.empty()) return absl::StrCat(name, " is not an option of Weir (`weir config` lists them)");
  return absl::StrCat(name, " is not an option of Weir; did you mean ", suggestion, "?");
}

std::vector<UnknownOption> FindUnknownOptions(const OptionTexts& texts) {
  std::vector<UnknownOption> unknown;
  for (const auto& [name, text] : texts) {
    if (FindOption(name) == nullptr) unknown.push_back({name, NearestOption(name)});
  }
  return unknown;
}

absl::StatusOr<Options> ParseOptions(const OptionTexts& texts) {
  Options options;
  for (const OptionRow& row : OptionTable()) {
    const auto found = texts.find(row.name);
    const bool set = found != texts.end() && !found->second.empty();
    const absl::Status status = row.read(set ? absl::string_view(found->second) : row.preset, &options);
    if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat(row.name, ": ", status.message()));
  }
  return options;
}

OptionTexts ReadEnvironment() {
  OptionTexts texts;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const size_t equals = text.find('=');
    if (!absl::StartsWith(text, "WEIR_") || equals == absl::string_view::npos) continue;
    texts.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return texts;
}

absl::StatusOr<Options> OptionsFromEnvironment() { return ParseOptions(ReadEnvironment()); }

std::optional<std::string> EnvironmentText(const std::string& name) {
  const char* text = getenv(name.c_str());
  if (text == nullptr) return std::nullopt;
  return std::string(text);
}

std::string RankText() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "LOCAL_RANK"}) {
    if (const std::optional<std::string> rank = EnvironmentText(name); rank && !rank->empty()) return *rank;
  }
  return "0";
}

int LocalRanks() {
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE",
                           "MPI_LOCALNRANKS", "PALS_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"}) {
    const std::optional<std::string> text = EnvironmentText(name);
    int ranks = 0;
    if (text && absl::SimpleAtoi(*text, &ranks) && ranks > 0) return ranks;
  }
  return 1;
}

}  // namespace weir
