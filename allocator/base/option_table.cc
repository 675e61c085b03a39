#include "allocator/base/option_table.h"

#include <array>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "allocator/base/size_text.h"

namespace weir {
namespace {

// Less than this and not one extent fits beside a slab: it is a slip of the unit, not a cap.
constexpr Bytes kSmallestCap = MiB(2);

#ifdef WEIR_TEST_POLICIES  // `youngest` is accepted but not documented: only tests want it
constexpr std::array<const char*, 3> kPolicies = {"auto", "lru", "youngest"};
#else
constexpr std::array<const char*, 2> kPolicies = {"auto", "lru"};
#endif
constexpr std::array<const char*, 5> kProfiles = {"h200", "h100", "a100-80g", "rtx4090", "rtx3060-12g"};

template <typename Names>
absl::Status NotAChoice(absl::string_view text, const Names& names) {
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is none of ", absl::StrJoin(names, ", ")));
}

template <typename Names>
bool Contains(const Names& names, absl::string_view text) {
  for (const char* name : names) {
    if (name == text) return true;
  }
  return false;
}

absl::Status ReadSwitch(absl::string_view text, bool* field) {
  if (text != "0" && text != "1") return NotAChoice(text, std::array{"0", "1"});
  *field = text == "1";
  return absl::OkStatus();
}

absl::Status ReadVramLimit(absl::string_view text, VramLimit* limit) {
  if (text == "auto" || text == "off") {
    limit->kind = text == "auto" ? VramLimit::Kind::kAuto : VramLimit::Kind::kOff;
    return absl::OkStatus();
  }
  if (!text.empty() && text.back() == '%') {
    const absl::StatusOr<double> percent = ParsePercent(text);
    if (!percent.ok()) return percent.status();
    *limit = {.kind = VramLimit::Kind::kPercent, .percent = *percent};
    return absl::OkStatus();
  }
  const absl::StatusOr<Bytes> bytes = ParseSize(text);
  if (!bytes.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(bytes.status().message(), ", a share such as 80%, auto or off"));
  if (*bytes < kSmallestCap) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is less than the smallest cap, 2MiB"));
  }
  *limit = {.kind = VramLimit::Kind::kBytes, .bytes = *bytes};
  return absl::OkStatus();
}

absl::Status ReadVram(absl::string_view text, Options* options) {
  VramSpec spec;
  if (text.find(':') == absl::string_view::npos) {
    const absl::Status status = ReadVramLimit(text, &spec.every_device);
    if (status.ok()) options->vram = spec;
    return status;
  }
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits(':', 1));
    int device = -1;
    if (!absl::SimpleAtoi(parts.first, &device) || device < 0 || spec.by_device.contains(device)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", entry, "\" is not DEVICE:LIMIT with each device once, such as 0:20GiB,1:40GiB"));
    }
    const absl::Status status = ReadVramLimit(parts.second, &spec.by_device[device]);
    if (!status.ok()) return status;
  }
  options->vram = spec;
  return absl::OkStatus();
}

absl::Status ReadRam(absl::string_view text, Options* options) {
  options->ram = {};
  if (text == "auto") return absl::OkStatus();
  constexpr absl::string_view kShared = "/node";
  const bool shared = absl::EndsWith(text, kShared);
  const absl::StatusOr<Bytes> bytes = ParseSize(text.substr(0, text.size() - (shared ? kShared.size() : 0)));
  if (!bytes.ok())
    return absl::InvalidArgumentError(absl::StrCat(bytes.status().message(), ", SIZE/node, or auto"));
  options->ram = {.bytes = *bytes, .per_node = shared};
  return absl::OkStatus();
}

absl::Status ReadPolicy(absl::string_view text, Options* options) {
  if (!Contains(kPolicies, text)) return NotAChoice(text, kPolicies);
  options->policy = std::string(text);
  return absl::OkStatus();
}

absl::Status ReadLog(absl::string_view text, Options* options) {
  constexpr std::array<const char*, 4> kLevels = {"error", "warn", "info", "debug"};
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  for (size_t level = 0; level < kLevels.size(); ++level) {
    if (parts.first != kLevels[level]) continue;
    if (parts.second.empty() && parts.first.size() != text.size()) {
      return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" names no file after the colon"));
    }
    options->log = {.level = static_cast<LogLevel>(level), .file = std::string(parts.second)};
    return absl::OkStatus();
  }
  return NotAChoice(parts.first, kLevels);
}

absl::Status ReadNvtx(absl::string_view text, Options* options) {
  constexpr std::array<const char*, 3> kModes = {"auto", "off", "on"};
  if (!Contains(kModes, text)) return NotAChoice(text, kModes);
  options->nvtx = text == "auto" ? NvtxMode::kAuto : text == "on" ? NvtxMode::kOn : NvtxMode::kOff;
  return absl::OkStatus();
}

absl::Status ReadTrace(absl::string_view text, Options* options) {
  options->trace = text == "off" ? "" : std::string(text);
  return absl::OkStatus();  // whether it can be written shows when the job uses CUDA
}
absl::Status ReadTraceSums(absl::string_view text, Options* options) {
  return ReadSwitch(text, &options->trace_sums);
}

// `h200x4` is four devices, and the emulated GPU checks the number; `rtx4090` is a name.
absl::string_view WithoutCount(absl::string_view profile) {
  if (Contains(kProfiles, profile)) return profile;
  const size_t cross = profile.rfind('x');
  if (cross == absl::string_view::npos || cross + 1 == profile.size()) return profile;
  const absl::string_view count = profile.substr(cross + 1);
  return count.find_first_not_of("0123456789") == absl::string_view::npos ? profile.substr(0, cross)
                                                                          : profile;
}

absl::Status ReadGpu(absl::string_view text, Options* options) {
  if (text == "real") {
    options->gpu = {};
    return absl::OkStatus();
  }
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  if (parts.first != "emulated") {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is none of real, emulated, emulated:PROFILE"));
  }
  const bool bare = parts.first.size() == text.size();
  const absl::string_view profile = bare ? kProfiles[0] : parts.second;
  const bool file = profile.find('/') != absl::string_view::npos;  // the emulated GPU reads it
  if (!file && !Contains(kProfiles, WithoutCount(profile))) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" names no profile; there are ",
                                                   absl::StrJoin(kProfiles, ", "),
                                                   ", and files by a path with a slash"));
  }
  options->gpu = {.emulated = true, .profile = std::string(profile)};
  return absl::OkStatus();
}

absl::Status ReadKernels(absl::string_view text, Options* options) {
  constexpr std::array<const char*, 2> kKernels = {"cpu", "none"};
  if (!Contains(kKernels, text)) return NotAChoice(text, kKernels);
  options->kernels = text == "cpu" ? Kernels::kCpu : Kernels::kNone;
  return absl::OkStatus();
}

absl::Status ReadEmulatedVram(absl::string_view text, Options* options) {
  options->emulated_vram.reset();
  if (text == "profile") return absl::OkStatus();
  const absl::StatusOr<Bytes> bytes = ParseSize(text);
  if (!bytes.ok()) return bytes.status();
  if (*bytes < kSmallestCap) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is less than the smallest card, 2MiB"));
  }
  options->emulated_vram = *bytes;
  return absl::OkStatus();
}

absl::Status ReadStrict(absl::string_view text, Options* options) {
  return ReadSwitch(text, &options->strict);
}
absl::Status ReadDisable(absl::string_view text, Options* options) {
  return ReadSwitch(text, &options->disable);
}
absl::Status ReadEmulatedPoison(absl::string_view text, Options* options) {
  return ReadSwitch(text, &options->emulated_poison);
}

// What only the emulated GPU acts on, which includes nothing of ours: checked here, so that a mistake shows early.
absl::Status ReadEmulatedReports(absl::string_view text, Options*) {
  constexpr std::array<const char*, 3> kReports = {"abort", "log", "count"};
  return Contains(kReports, text) ? absl::OkStatus() : NotAChoice(text, kReports);
}
absl::Status ReadEmulatedStreams(absl::string_view text, Options*) {
  constexpr std::array<const char*, 2> kStreams = {"lazy", "eager"};
  return Contains(kStreams, text) ? absl::OkStatus() : NotAChoice(text, kStreams);
}
absl::Status ReadEmulatedChecks(absl::string_view text, Options*) {
  constexpr std::array<const char*, 2> kChecks = {"on", "off"};
  return Contains(kChecks, text) ? absl::OkStatus() : NotAChoice(text, kChecks);
}
absl::Status ReadEmulatedTiming(absl::string_view text, Options* options) {
  return ReadSwitch(text, &options->emulated_timing);
}
absl::Status ReadEmulatedSeed(absl::string_view text, Options*) {
  uint64_t seed = 0;
  if (absl::SimpleAtoi(text, &seed)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a number"));
}

absl::Status ReadEmulatedFaults(absl::string_view text, Options* options) {
  options->emulated_faults = text == "none" ? "" : std::string(text);
  return absl::OkStatus();  // the emulated GPU knows what a plan is; `weir run` asks it
}
absl::Status ReadEmulatedChosen(absl::string_view text, Options* options) {
  return ReadSwitch(text, &options->emulated_chosen);
}
absl::Status ReadBesideRealGpu(absl::string_view text, Options* options) {
  return ReadSwitch(text, &options->beside_real_gpu);
}
absl::Status ReadForEmulator(absl::string_view, Options*) { return absl::OkStatus(); }
absl::Status ReadWatchNative(absl::string_view text, Options* options) {
  return ReadSwitch(text, &options->watch_native);
}
absl::Status ReadShow(absl::string_view text, Options* options) {
  constexpr std::array<const char*, 2> kShown = {"cap", "card"};
  if (!Contains(kShown, text)) return NotAChoice(text, kShown);
  options->show_card = text == "card";
  return absl::OkStatus();
}
absl::Status ReadWatch(absl::string_view text, Options* options) {
  constexpr std::array<const char*, 2> kWatches = {"auto", "always"};
  if (!Contains(kWatches, text)) return NotAChoice(text, kWatches);
  options->watch_always = text == "always";
  return absl::OkStatus();
}
absl::Status ReadRequired(absl::string_view text, Options* options) {
  return ReadSwitch(text, &options->required);
}

constexpr OptionRow kTable[] = {
    {"WEIR_VRAM", "limit", "bytes", "auto", "auto | off | SIZE | PERCENT | DEVICE:LIMIT,...; at least 2MiB",
     "The cap on the VRAM that Weir holds: `auto` is the card's total less what others hold and a reserve of "
     "3 % (at least "
     "512 MiB), a size is bytes, a percentage is of the card's total less what others hold, `off` is no cap.",
     "--vram", false, ReadVram},
    {"WEIR_RAM", "size", "bytes", "auto", "auto | SIZE | SIZE/node",
     "The pinned RAM for what does not fit: a size is what this process may use, on all its devices; with "
     "`/node` the user's Weir processes on this machine share it; `auto` is half of what the machine or the "
     "container has available at start (of the profile's RAM on an emulated GPU with kernels `none`), "
     "divided by the local ranks, or by the user's Weir processes where these are more.",
     "--ram", false, ReadRam},
    {"WEIR_POLICY", "choice", "", "auto", "auto | lru",
     "Who chooses what leaves the GPU first: `lru` is the least recently used, `auto` is at present the "
     "same.",
     "--policy", false, ReadPolicy},
    {"WEIR_LOG", "log", "", "warn", "error | warn | info | debug, each optionally :FILE",
     "What Weir says, on stderr or in a file, in whose name %p is the process id, %h the host and %r the "
     "rank.",
     "--log", false, ReadLog},
    {"WEIR_NVTX", "choice", "", "auto", "auto | off | on",
     "NVTX ranges for evictions, fetches, waits and out-of-memory: `auto` and `on` make them when a profiler "
     "is attached.",
     "", false, ReadNvtx},
    {"WEIR_TRACE", "text", "", "off", "off | FILE",
     "Records what happens to memory, ops included, in this file, which `weir trace` reads: %p is the "
     "process "
     "id, %h the host and %r the rank. The file is replaced if it is an older trace.",
     "--trace", false, ReadTrace},
    {"WEIR_TRACE_SUMS", "switch", "", "0", "0 | 1",
     "Also records a checksum of what each op returns; slow, for every op is waited for and its results are "
     "copied out.",
     "", false, ReadTraceSums},
    {"WEIR_SHOW", "choice", "", "cap", "cap | card",
     "The memory that the job is told it has, by `torch.cuda.mem_get_info` and `cudaMemGetInfo`: `cap` is "
     "what "
     "it may use, `card` is the whole card. NVML always shows the card.",
     "", false, ReadShow},
    {"WEIR_WATCH", "choice", "", "auto", "auto | always",
     "When the job's ops are watched, which costs some microseconds each: `auto` is as long as something may "
     "have to leave VRAM (not while a job repeats itself and fits), `always` is from start to end.",
     "", false, ReadWatch},
    {"WEIR_STRICT", "switch", "", "0", "0 | 1",
     "Refuses what is otherwise a warning: a `WEIR_*` name that is no option, and a torch version that is "
     "not known.",
     "", false, ReadStrict},
    {"WEIR_DISABLE", "switch", "", "0", "0 | 1",
     "Leaves torch's own allocator in place and nothing else; an emulated GPU that was named stays.", "",
     false, ReadDisable},
    {"WEIR_GPU", "choice", "", "real",
     "real | emulated[:h200 | h100 | a100-80g | rtx4090 | rtx3060-12g | FILE]",
     "The GPU that the job sees: the real one, or an emulated one with the profile of a card (`emulated` is "
     "h200), or with that in a file, named by a path with a slash; `h200x4` is four cards "
     "(docs/profiles.md).",
     "--gpu", false, ReadGpu},
    {"WEIR_BESIDE_REAL_GPU", "switch", "", "0", "0 | 1",
     "Lets `weir run --gpu emulated` start a job on a machine with a real driver, whose card the job then "
     "cannot reach.",
     "--beside-real-gpu", false, ReadBesideRealGpu},
    {"WEIR_KERNELS", "choice", "", "cpu", "cpu | none",
     "What a kernel does on the emulated GPU: `cpu` computes real numbers on the CPU, `none` does nothing.",
     "--kernels", false, ReadKernels},
    {"WEIR_EMULATED_VRAM", "size", "bytes", "profile", "profile | SIZE; at least 2MiB",
     "The total VRAM of the emulated GPU, instead of that of its profile.", "--emulated-vram", false,
     ReadEmulatedVram},
    {"WEIR_EMULATED_POISON", "switch", "", "0", "0 | 1",
     "New memory of the emulated GPU holds the byte 0xCB instead of zeros, so that what reads it before "
     "writing shows.",
     "", false, ReadEmulatedPoison},
    {"WEIR_EMULATED_REPORTS", "choice", "", "log", "abort | log | count",
     "What a report of the emulated GPU does, that is something a real one would have punished: `abort` ends "
     "the "
     "process with exit code 70, `log` prints it, `count` only counts it in the exit line.",
     "--reports", false, ReadEmulatedReports},
    {"WEIR_EMULATED_STREAMS", "choice", "", "lazy", "lazy | eager",
     "When copies of the emulated GPU run: `lazy` when something waits for them, `eager` when they are "
     "enqueued.",
     "", false, ReadEmulatedStreams},
    {"WEIR_EMULATED_SEED", "number", "", "0", "0 and up",
     "How lazy the emulated GPU's streams are: 0 is as late as possible, other seeds run some work early.",
     "", false, ReadEmulatedSeed},
    {"WEIR_EMULATED_CHECKS", "choice", "", "on", "on | off",
     "Whether the emulated GPU checks launches and the order of accesses; off to measure what that costs.",
     "", false, ReadEmulatedChecks},
    {"WEIR_EMULATED_TIMING", "switch", "", "0", "0 | 1",
     "The emulated GPU prints at the exit what its virtual clock says: the time of a training step, how busy "
     "each engine was, and what host threads waited for.",
     "--timing", false, ReadEmulatedTiming},
    {"WEIR_EMULATED_FAULTS", "text", "", "none", "none | seed:N | seed:N,RATE | FILE",
     "Which driver calls of the emulated GPU fail: at random by a seed, or by the plan in a file "
     "(tools/emulated_gpu).",
     "--faults", false, ReadEmulatedFaults},
    {"WEIR_EMULATED_CHOSEN", "switch", "", "0", "0 | 1",
     "Set by `weir run`: the emulated GPU was asked for, so it may run beside a real driver.", "", true,
     ReadEmulatedChosen},
    {"WEIR_EMULATED_CONTEXT", "size", "bytes", "", "SIZE",
     "Set by `weir dryrun`: what the context of each process takes of the emulated card.", "", true,
     ReadForEmulator},
    {"WEIR_EMULATED_OVERCOMMIT", "switch", "", "0", "0 | 1",
     "Set by `weir dryrun`: what does not fit the emulated card is granted all the same.", "", true,
     ReadForEmulator},
    {"WEIR_EMULATED_FIGURES", "text", "", "", "FILE",
     "Set by `weir dryrun`: where the emulated GPU writes its figures at the exit.", "", true,
     ReadForEmulator},
    {"WEIR_WATCH_NATIVE", "switch", "", "0", "0 | 1",
     "Set by `weir dryrun`: torch's own allocator stays in place, and the trace tells what it does.", "",
     true, ReadWatchNative},
    {"WEIR_EMULATED_REAL_DRIVER", "text", "", "", "PATH",
     "For tests: the file that tells the emulated GPU that a real driver is here.", "", true,
     ReadForEmulator},
    {"WEIR_EMULATED_SHARED", "text", "", "", "HEX",
     "Set by `weir run`: where its processes keep what they use of the emulated cards.", "", true,
     ReadForEmulator},
    {"WEIR_REQUIRED", "switch", "", "0", "0 | 1", "Set by `weir run`: the job must not go on without Weir.",
     "", true, ReadRequired},
};

}  // namespace

std::span<const OptionRow> OptionTable() { return kTable; }

const OptionRow* FindOption(absl::string_view name) {
  for (const OptionRow& row : kTable) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::span<const char* const> PolicyNames() { return kPolicies; }

}  // namespace weir
