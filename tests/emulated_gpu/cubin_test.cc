// Parameters of kernels out of cubins and fat binaries, and which words of them are pointers for certain.
#include "tools/emulated_gpu/device/cubin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulated_gpu/made_cubin.h"
#include "tools/emulated_gpu/device/argument_words.h"
#include "tools/emulated_gpu/device/fat_binary.h"

namespace weir::emulated {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Filled = ArgumentWords::Filled;

TEST(Cubin, Read_KernelsOfBothFormats_GivesOffsetsAndSizes) {
  const std::string image = MadeCubin(
      {{"first", {{0, 8}, {8, 4}, {16, 24}}}, {"second", {{0, 30000}, {30000, 8}}, true}, {"third", {}}});
  ParameterTable table;
  ASSERT_EQ(ElfSize(image.data()), image.size());
  ASSERT_TRUE(ReadCubin(image.data(), image.size(), &table));
  const Parameters& first = table.at(KernelNameHash("first"));
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first[2].offset, 16);
  EXPECT_EQ(first[2].size, 24);
  const Parameters& second = table.at(KernelNameHash("second"));
  ASSERT_EQ(second.size(), 2u);
  EXPECT_EQ(second[0].size, 30000);
  EXPECT_EQ(second[1].offset, 30000);
  EXPECT_THAT(table.at(KernelNameHash("third")), IsEmpty());
}

TEST(Cubin, Read_KernelWhoseParametersDoNotFillItsBuffer_IsLeftOut) {
  const std::string image = MadeCubin({{"odd", {{0, 8}}, false, 16}, {"even", {{0, 8}}}});
  ParameterTable table;
  ASSERT_TRUE(ReadCubin(image.data(), image.size(), &table));
  EXPECT_EQ(table.count(KernelNameHash("odd")), 0u);
  EXPECT_EQ(table.count(KernelNameHash("even")), 1u);
}

TEST(Cubin, Read_AnyPrefixOfAnImage_IsRefused) {
  const std::string image = MadeCubin({{"kernel", {{0, 8}, {8, 8}}}});
  for (size_t size = 0; size < image.size(); ++size) {
    const std::string prefix = image.substr(0, size);
    ParameterTable table;
    EXPECT_FALSE(ReadCubin(prefix.data(), prefix.size(), &table)) << size;
    EXPECT_THAT(table, IsEmpty());
  }
}

std::string Entry(const std::string& image, uint64_t size) {
  std::string entry;
  Append<uint16_t>(entry, 2);  // a cubin
  Append<uint16_t>(entry, 0x101);
  Append<uint32_t>(entry, 64);
  Append<uint64_t>(entry, image.size());
  Append<uint32_t>(entry, size == 0 ? 0 : image.size());
  entry.resize(56);
  Append<uint64_t>(entry, size);
  return entry + image;
}

std::string Container(const std::string& entries) {
  std::string container;
  Append<uint32_t>(container, kFatBinaryContainer);
  Append<uint16_t>(container, 1);
  Append<uint16_t>(container, 16);
  Append<uint64_t>(container, entries.size());
  return container + entries;
}

TEST(FatBinary, Read_KernelThatOnlyOneArchitectureHas_IsFound) {
  const std::string container =
      Container(Entry(MadeCubin({{"everywhere", {}}}), 0) + Entry(MadeCubin({{"hopper_only", {{0, 8}}}}), 0));
  ParameterTable table;
  EXPECT_EQ(ReadKernelImage(container.data(), "hopper_only", &table), "");
  EXPECT_EQ(table.count(KernelNameHash("hopper_only")), 1u);
}

TEST(FatBinary, Read_ImageCompressedInAnotherWay_SaysSo) {
  const std::string container = Container(Entry("LZ4 or whatever it may be", 4096));
  ParameterTable table;
  EXPECT_EQ(ReadKernelImage(container.data(), nullptr, &table), "its image is compressed, and not with zstd");
}

TEST(ArgumentWords, Types_OfDemangledNames_AreSplitAtTheirCommas) {
  EXPECT_THAT(ParameterTypes("void k<4, f(int)::{lambda(float, bool)#1}, std::array<char*, 3ul>, false>(int, "
                             "f(int)::{lambda(float, bool)#1}, std::array<char*, 3ul>)"),
              ElementsAre("int", "f(int)::{lambda(float, bool)#1}", "std::array<char*, 3ul>"));
  EXPECT_THAT(ParameterTypes("k(a::(anonymous namespace)::S<int, 2>, void const*)"),
              ElementsAre("a::(anonymous namespace)::S<int, 2>", "void const*"));
  EXPECT_THAT(ParameterTypes("triton_poi_fused_add_0"), IsEmpty());
}

struct Case {
  const char* type;
  uint16_t size;
  std::vector<ArgumentWords> expected;
};

ArgumentWords Expected(uint16_t offset, uint16_t count, Filled filled = Filled::kAll, uint16_t table = 0,
                       uint8_t entry = 0) {
  return {0, offset, count, filled, table, entry};
}

TEST(ArgumentWords, Find_KnownTypes_GivesTheirPointers) {
  const std::vector<Case> cases = {
      {"float const*", 8, {Expected(0, 1)}},
      {"float* const", 8, {Expected(0, 1)}},
      {"int", 4, {}},
      {"long", 8, {Expected(0, 1, Filled::kPerhaps)}},
      {"std::array<char*, 3ul>", 24, {Expected(0, 3)}},
      {"std::array<long, 3ul>", 24, {Expected(0, 3, Filled::kPerhaps)}},
      {"at::cuda::detail::TensorInfo<float, int>", 216, {Expected(0, 1)}},
      {"Something<float>", 216, {Expected(0, 27, Filled::kPerhaps)}},
      // 770 entries of two lists, 2240 blocks; sizes as sizeof() gives them for the structs of MultiTensorApply.cuh.
      {"at::native::(anonymous namespace)::TensorListMetadata<1>",
       25768,
       {Expected(0, 770, Filled::kByBlock, 12320, 2)}},
      {"at::native::(anonymous namespace)::TensorListMetadata<2>",
       24200,
       {Expected(0, 448, Filled::kByBlock, 10752, 2), Expected(3584, 448, Filled::kByBlock, 10752, 2)}},
      {"at::native::(anonymous namespace)::TensorListScalarListMetadata<float, 1>",
       26880,
       {Expected(0, 672, Filled::kByBlock, 13440, 2)}},
      {"at::native::TensorListAddresses", 2400, {Expected(0, 300, Filled::kGridX)}},
      // 110 entries, 320 blocks: before CUDA 13.
      {"at::native::(anonymous namespace)::TensorListMetadata<1>",
       3368,
       {Expected(0, 110, Filled::kByBlock, 1760, 1)}},
      {"at::native::(anonymous namespace)::TensorListMetadata<1>",
       1000,
       {Expected(0, 125, Filled::kPerhaps)}},
  };
  for (const Case& one : cases) {
    const std::string name = "void k<1>(" + std::string(one.type) + ")";
    const std::vector<ArgumentWords> found = FindArgumentWords(name, {{0, one.size}});
    ASSERT_EQ(found.size(), one.expected.size()) << one.type;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].offset, one.expected[i].offset) << one.type;
      EXPECT_EQ(found[i].count, one.expected[i].count) << one.type;
      EXPECT_EQ(found[i].filled, one.expected[i].filled) << one.type;
      EXPECT_EQ(found[i].table_offset, one.expected[i].table_offset) << one.type;
      EXPECT_EQ(found[i].table_entry, one.expected[i].table_entry) << one.type;
    }
  }
}

TEST(ArgumentWords, Find_NameWithoutTypes_TakesEightByteParameters) {
  const std::vector<ArgumentWords> found =
      FindArgumentWords("triton_poi_fused_add_0", {{0, 8}, {8, 4}, {16, 32}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].filled, Filled::kAll);
  EXPECT_EQ(found[1].filled, Filled::kPerhaps);
  EXPECT_EQ(found[1].parameter, 2);
}

}  // namespace
}  // namespace weir::emulated
