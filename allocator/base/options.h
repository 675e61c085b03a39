// The options of Weir, as values. option_table.h describes them (names, defaults, sentences); this is what
// they mean. Options come from the environment (`WEIR_*`); options.cc is the only place of the product that
// reads it. Everything here may be called from any thread as long as nobody changes the environment
// meanwhile.
#ifndef WEIR_ALLOCATOR_BASE_OPTIONS_H_
#define WEIR_ALLOCATOR_BASE_OPTIONS_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/log.h"
#include "allocator/base/units.h"

namespace weir {

// The cap of one device, before it is made a number of bytes.
struct VramLimit {
  enum class Kind { kAuto, kOff, kBytes, kPercent };
  Kind kind = Kind::kAuto;
  Bytes bytes{};       // kBytes
  double percent = 0;  // kPercent: more than 0, at most 100, of the card's total
  friend bool operator==(const VramLimit&, const VramLimit&) = default;
};

// WEIR_VRAM: one limit for all devices, or one per device; a device that is not named then is `auto`.
struct VramSpec {
  VramLimit every_device;
  std::map<int, VramLimit> by_device;
  VramLimit ForDevice(int device) const;
};

// WEIR_RAM: the pinned memory that may be used as a tier. Empty is `auto`.
struct RamSpec {
  std::optional<Bytes> bytes;
  bool per_node = false;  // by all processes of the user on this machine together, else by this one
};

enum class NvtxMode { kAuto, kOff, kOn };
enum class Kernels { kCpu, kNone };

// WEIR_GPU: the real GPU, or the emulated one with the profile of a card.
struct GpuSpec {
  bool emulated = false;
  std::string profile;  // `h200` ..., or the path of a file; empty when not emulated
};

struct Options {
  VramSpec vram;
  RamSpec ram;
  std::string policy;  // a name of policies/registry
  LogSpec log;
  NvtxMode nvtx = NvtxMode::kAuto;
  std::string trace;  // file; empty: none
  bool trace_sums = false;
  bool show_card = false;     // what asks for the memory of the device is told of the whole card
  bool watch_always = false;  // the job's ops are seen from start to end
  bool strict = false;
  bool disable = false;
  bool required = false;  // set by `weir run`: the job must not run without Weir
  GpuSpec gpu;
  Kernels kernels = Kernels::kCpu;
  std::optional<Bytes> emulated_vram;  // instead of the profile's VRAM
  bool emulated_timing = false;
  bool emulated_poison = false;  // these are read by the emulated GPU, which includes nothing of ours
  std::string emulated_faults;   // seed or file; empty: nothing is planned to fail
  bool emulated_chosen = false;
  bool beside_real_gpu = false;
  bool watch_native = false;  // torch's own allocator stays in place, and is traced
};

// The texts of options that were set, by name (`WEIR_VRAM`).
using OptionTexts = std::map<std::string, std::string>;

// A `WEIR_*` name that no option has.
struct UnknownOption {
  std::string name;
  std::string suggestion;  // the option that is probably meant; empty if none is near
  std::string Message() const;
};

// Splits `texts` into options and unknown names. Never fails.
std::vector<UnknownOption> FindUnknownOptions(const OptionTexts& texts);

// Reads every option, defaults included. INVALID_ARGUMENT: a sentence that names the option, the value and
// what is accepted. Unknown names are ignored here. An option set to the empty text counts as not set.
absl::StatusOr<Options> ParseOptions(const OptionTexts& texts);

// All variables of the environment whose name starts with `WEIR_`.
OptionTexts ReadEnvironment();
absl::StatusOr<Options> OptionsFromEnvironment();

// Any other variable that the product must know of, such as PYTORCH_ALLOC_CONF. Empty if not set.
std::optional<std::string> EnvironmentText(const std::string& name);

// This process's rank in its job: RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID or LOCAL_RANK, the first that is set; "0"
// if none is.
std::string RankText();

// How many processes of the job run on this machine, as its launcher says (torchrun, Open MPI, MVAPICH, Intel and Cray MPI,
// Slurm): the first variable that is a positive number; 1 if none is.
int LocalRanks();

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BASE_OPTIONS_H_
