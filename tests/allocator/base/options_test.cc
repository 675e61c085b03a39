#include "allocator/base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "allocator/base/option_table.h"

namespace weir {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string ErrorOf(const OptionTexts& texts) {
  const absl::StatusOr<Options> options = ParseOptions(texts);
  return options.ok() ? "" : std::string(options.status().message());
}

// C122
TEST(OptionTable, EveryRow_IsNamedOnceAndReadsItsPreset) {
  std::set<std::string> names;
  std::set<std::string> flags;
  for (const OptionRow& row : OptionTable()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    if (*row.flag != '\0') {
      EXPECT_TRUE(flags.insert(row.flag).second) << row.flag;
    }
    Options options;
    EXPECT_TRUE(row.read(row.preset, &options).ok()) << row.name;
    EXPECT_EQ(row.sentence[strlen(row.sentence) - 1], '.') << row.name;
  }
}

TEST(ParseOptions, NothingSet_Defaults) {
  const Options options = ParseOptions({}).value();
  EXPECT_EQ(options.vram.ForDevice(0).kind, VramLimit::Kind::kAuto);
  EXPECT_FALSE(options.ram.bytes.has_value());
  EXPECT_EQ(options.policy, "auto");
  EXPECT_EQ(options.log.level, LogLevel::kWarn);
  EXPECT_EQ(options.log.file, "");
  EXPECT_EQ(options.nvtx, NvtxMode::kAuto);
  EXPECT_FALSE(options.strict);
  EXPECT_FALSE(options.disable);
  EXPECT_FALSE(options.gpu.emulated);
  EXPECT_EQ(options.kernels, Kernels::kCpu);
  EXPECT_FALSE(options.emulated_vram.has_value());
}

TEST(ParseOptions, EmptyText_CountsAsNotSet) {
  EXPECT_EQ(ParseOptions({{"WEIR_VRAM", ""}}).value().vram.ForDevice(0).kind, VramLimit::Kind::kAuto);
}

TEST(ParseOptions, EveryOptionSet_IsRead) {
  const Options options = ParseOptions({{"WEIR_VRAM", "20GiB"},
                                        {"WEIR_RAM", "64G"},
                                        {"WEIR_POLICY", "lru"},
                                        {"WEIR_LOG", "info:/tmp/weir.%p"},
                                        {"WEIR_NVTX", "off"},
                                        {"WEIR_STRICT", "1"},
                                        {"WEIR_DISABLE", "1"},
                                        {"WEIR_GPU", "emulated:a100-80g"},
                                        {"WEIR_BESIDE_REAL_GPU", "1"},
                                        {"WEIR_KERNELS", "none"},
                                        {"WEIR_EMULATED_VRAM", "12GB"},
                                        {"WEIR_EMULATED_POISON", "1"},
                                        {"WEIR_EMULATED_TIMING", "1"},
                                        {"WEIR_EMULATED_FAULTS", "seed:7"},
                                        {"WEIR_EMULATED_CHOSEN", "1"},
                                        {"WEIR_REQUIRED", "1"}})
                              .value();
  EXPECT_EQ(options.vram.ForDevice(7).bytes, GiB(20));
  EXPECT_EQ(options.ram.bytes, GiB(64));
  EXPECT_EQ(options.policy, "lru");
  EXPECT_EQ(options.log.level, LogLevel::kInfo);
  EXPECT_EQ(options.log.file, "/tmp/weir.%p");
  EXPECT_EQ(options.nvtx, NvtxMode::kOff);
  EXPECT_TRUE(options.strict);
  EXPECT_TRUE(options.disable);
  EXPECT_TRUE(options.gpu.emulated);
  EXPECT_EQ(options.gpu.profile, "a100-80g");
  EXPECT_EQ(options.kernels, Kernels::kNone);
  EXPECT_EQ(options.emulated_vram, Bytes(12'000'000'000));
  EXPECT_TRUE(options.emulated_poison);
  EXPECT_TRUE(options.emulated_timing);
  EXPECT_EQ(options.emulated_faults, "seed:7");
  EXPECT_TRUE(options.emulated_chosen);
  EXPECT_TRUE(options.beside_real_gpu);
  EXPECT_TRUE(options.required);
}

TEST(ParseOptions, VramPerDevice_OthersAreAuto) {
  const Options options = ParseOptions({{"WEIR_VRAM", "0:20GiB,1:50%,3:off"}}).value();
  EXPECT_EQ(options.vram.ForDevice(0).bytes, GiB(20));
  EXPECT_EQ(options.vram.ForDevice(1).percent, 50);
  EXPECT_EQ(options.vram.ForDevice(2).kind, VramLimit::Kind::kAuto);
  EXPECT_EQ(options.vram.ForDevice(3).kind, VramLimit::Kind::kOff);
}

TEST(ParseOptions, BareEmulated_IsH200) {
  EXPECT_EQ(ParseOptions({{"WEIR_GPU", "emulated"}}).value().gpu.profile, "h200");
  EXPECT_EQ(ParseOptions({{"WEIR_GPU", "emulated:./my.card"}}).value().gpu.profile, "./my.card");
}

TEST(ParseOptions, EveryProfile_IsAccepted_AloneAndCounted) {
  for (const std::string name : {"h200", "h100", "a100-80g", "rtx4090", "rtx3060-12g"}) {
    EXPECT_EQ(ParseOptions({{"WEIR_GPU", "emulated:" + name}}).value().gpu.profile, name);
    EXPECT_EQ(ParseOptions({{"WEIR_GPU", "emulated:" + name + "x2"}}).value().gpu.profile, name + "x2");
  }
  EXPECT_THAT(ErrorOf({{"WEIR_GPU", "emulated:rtx4091"}}), HasSubstr("\"emulated:rtx4091\""));
}

TEST(ParseOptions, BadVram_NamesOptionValueAndWayOut) {
  EXPECT_THAT(ErrorOf({{"WEIR_VRAM", "24Gb"}}),
              testing::AllOf(HasSubstr("WEIR_VRAM"), HasSubstr("\"24Gb\""), HasSubstr("24GiB"),
                             HasSubstr("80%"), HasSubstr("auto")));
  EXPECT_THAT(ErrorOf({{"WEIR_VRAM", "-1"}}), HasSubstr("\"-1\""));
  EXPECT_THAT(ErrorOf({{"WEIR_VRAM", "0"}}), HasSubstr("smallest cap"));
  EXPECT_THAT(ErrorOf({{"WEIR_VRAM", "24"}}), HasSubstr("smallest cap"));
  EXPECT_THAT(ErrorOf({{"WEIR_VRAM", "120%"}}), HasSubstr("120%"));
  EXPECT_THAT(ErrorOf({{"WEIR_VRAM", "0:20GiB,0:10GiB"}}), HasSubstr("0:10GiB"));
  EXPECT_THAT(ErrorOf({{"WEIR_VRAM", "20GiB,1:10GiB"}}), HasSubstr("\"20GiB\""));
  EXPECT_THAT(ErrorOf({{"WEIR_VRAM", "0:20GiB,1:"}}), HasSubstr("\"\""));
}

TEST(ParseOptions, BadChoice_ListsTheChoices) {
  EXPECT_THAT(ErrorOf({{"WEIR_POLICY", "fifo"}}),
              testing::AllOf(HasSubstr("WEIR_POLICY"), HasSubstr("\"fifo\""), HasSubstr("lru")));
  EXPECT_THAT(ErrorOf({{"WEIR_LOG", "loud"}}), HasSubstr("debug"));
  EXPECT_THAT(ErrorOf({{"WEIR_LOG", "info:"}}), HasSubstr("no file"));
  EXPECT_THAT(ErrorOf({{"WEIR_NVTX", "maybe"}}), HasSubstr("auto"));
  EXPECT_THAT(ErrorOf({{"WEIR_STRICT", "yes"}}), HasSubstr("\"yes\""));
  EXPECT_THAT(ErrorOf({{"WEIR_GPU", "fake"}}), HasSubstr("emulated"));
  EXPECT_THAT(ErrorOf({{"WEIR_GPU", "emulated:"}}), HasSubstr("h200"));
  EXPECT_THAT(ErrorOf({{"WEIR_GPU", "emulated:v100"}}), HasSubstr("\"emulated:v100\""));
  EXPECT_THAT(ErrorOf({{"WEIR_KERNELS", "gpu"}}), HasSubstr("none"));
  EXPECT_THAT(ErrorOf({{"WEIR_RAM", "50%"}}), HasSubstr("WEIR_RAM"));
  EXPECT_THAT(ErrorOf({{"WEIR_EMULATED_VRAM", "big"}}), HasSubstr("WEIR_EMULATED_VRAM"));
  EXPECT_THAT(ErrorOf({{"WEIR_EMULATED_REPORTS", "shout"}}), HasSubstr("count"));
  EXPECT_THAT(ErrorOf({{"WEIR_EMULATED_STREAMS", "slow"}}), HasSubstr("eager"));
  EXPECT_THAT(ErrorOf({{"WEIR_EMULATED_CHECKS", "1"}}), HasSubstr("off"));
  EXPECT_THAT(ErrorOf({{"WEIR_EMULATED_SEED", "-1"}}), HasSubstr("\"-1\""));
}

TEST(FindUnknownOptions, NearName_IsSuggested) {
  const std::vector<UnknownOption> unknown = FindUnknownOptions({{"WEIR_VRAN", "1G"}, {"WEIR_RAM", "1G"}});
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_EQ(unknown[0].suggestion, "WEIR_VRAM");
  EXPECT_THAT(unknown[0].Message(), HasSubstr("did you mean WEIR_VRAM?"));
}

TEST(FindUnknownOptions, FarName_NoSuggestion) {
  const std::vector<UnknownOption> unknown = FindUnknownOptions({{"WEIR_COLOUR_OF_THE_SKY", "1"}});
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_EQ(unknown[0].suggestion, "");
  EXPECT_THAT(unknown[0].Message(), HasSubstr("weir config"));
}

TEST(ReadEnvironment, OnlyWeirNames_AreTaken) {
  setenv("WEIR_RAM", "3G", 1);
  setenv("NOT_WEIR_RAM", "4G", 1);
  const OptionTexts texts = ReadEnvironment();
  EXPECT_EQ(texts.at("WEIR_RAM"), "3G");
  EXPECT_FALSE(texts.contains("NOT_WEIR_RAM"));
  EXPECT_EQ(OptionsFromEnvironment().value().ram.bytes, GiB(3));
  unsetenv("WEIR_RAM");
}

TEST(ParseOptions, RamOfTheMachine_IsSharedByItsProcesses) {
  const RamSpec shared = ParseOptions({{"WEIR_RAM", "200GiB/node"}}).value().ram;
  EXPECT_EQ(shared.bytes, GiB(200));
  EXPECT_TRUE(shared.per_node);
  EXPECT_FALSE(ParseOptions({{"WEIR_RAM", "200GiB"}}).value().ram.per_node);
  for (const char* text : {"/node", "auto/node", "2GiB/nodes", "2GiB/", "2GiB /node"})
    EXPECT_THAT(ErrorOf({{"WEIR_RAM", text}}), AllOf(HasSubstr("WEIR_RAM"), HasSubstr("SIZE/node"))) << text;
}

TEST(LocalRanks, Launchers_FirstPositiveNumber) {
  constexpr std::array kLaunchers = {"SLURM_NTASKS_PER_NODE", "PALS_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                     "MV2_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"};
  unsetenv("LOCAL_WORLD_SIZE");
  for (const char* name : kLaunchers) unsetenv(name);
  EXPECT_EQ(LocalRanks(), 1);
  int ranks = 3;
  for (const char* name : kLaunchers) {
    setenv(name, std::to_string(++ranks).c_str(), 1);
    EXPECT_EQ(LocalRanks(), ranks) << name;
  }
  EXPECT_EQ(LocalRanks(), 8);
  setenv("LOCAL_WORLD_SIZE", "4", 1);
  EXPECT_EQ(LocalRanks(), 4);
  setenv("LOCAL_WORLD_SIZE", "many", 1);
  EXPECT_EQ(LocalRanks(), 8);
}

TEST(RankText, LaunchersInOrder_FirstSet) {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) unsetenv(name);
  EXPECT_EQ(RankText(), "0");
  setenv("SLURM_PROCID", "5", 1);
  EXPECT_EQ(RankText(), "5");
  setenv("RANK", "2", 1);
  EXPECT_EQ(RankText(), "2");
}

}  // namespace
}  // namespace weir
