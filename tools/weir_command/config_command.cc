#include "tools/weir_command/config_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "allocator/base/option_table.h"

namespace weir {
namespace {

struct Shown {
  const OptionRow* row;
  std::string value;
  std::string source;
};

std::vector<Shown> ShownOptions(const OptionTexts& texts) {
  std::vector<Shown> shown;
  for (const OptionRow& row : OptionTable()) {
    if (row.internal) continue;
    const auto found = texts.find(row.name);
    const bool set = found != texts.end() && !found->second.empty();
    shown.push_back({&row, set ? found->second : row.preset, set ? "environment" : "default"});
  }
  return shown;
}

}  // namespace

std::string ConfigAsText(const OptionTexts& texts) {
  const std::vector<Shown> options = ShownOptions(texts);
  size_t width = 5;
  for (const Shown& option : options) width = std::max(width, option.value.size());
  const int value_width = static_cast<int>(width);
  std::string text =
      absl::StrFormat("%-21s %-*s %-12s %s\n", "option", value_width, "value", "source", "default");
  for (const Shown& option : options) {
    absl::StrAppendFormat(&text, "%-21s %-*s %-12s %s\n", option.row->name, value_width, option.value,
                          option.source, option.row->preset);
  }
  return text;
}

std::string ConfigAsJson(const OptionTexts& texts) {
  nlohmann::ordered_json options = nlohmann::ordered_json::array();
  for (const Shown& option : ShownOptions(texts)) {
    options.push_back({{"name", option.row->name},
                       {"value", option.value},
                       {"source", option.source},
                       {"default", option.row->preset},
                       {"type", option.row->type},
                       {"unit", option.row->unit},
                       {"accepts", option.row->accepts},
                       {"flag", option.row->flag},
                       {"meaning", option.row->sentence}});
  }
  return nlohmann::ordered_json{{"options", options}}.dump(2) + "\n";
}

std::string OptionsPage() {
  std::string page =
      "# Options\n\n"
      "Made from the option table (`allocator/base/option_table.cc`) by `weir config --page`; do not "
      "edit.\n\n"
      "Options are environment variables; `weir run` has a flag for most and sets the variable for the job. "
      "A size is\n"
      "`24GiB`, `24G` (= GiB), `24GB` (10^9), `512MiB`, `512M` or plain bytes. `weir config` shows what is "
      "in force.\n\n"
      "| option | flag of `weir run` | default | accepts | meaning |\n|---|---|---|---|---|\n";
  for (const OptionRow& row : OptionTable()) {
    if (row.internal) continue;
    const std::string accepts = absl::StrReplaceAll(row.accepts, {{"|", "\\|"}});
    const std::string flag = *row.flag == '\0' ? "" : absl::StrCat("`", row.flag, "`");
    absl::StrAppend(&page, "| `", row.name, "` | ", flag, " | `", row.preset, "` | ", accepts, " | ",
                    row.sentence, " |\n");
  }
  return page;
}

}  // namespace weir
