#include "allocator/base/torch_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TorchConfTest, Read_KeysThatTorchFollows_AreNotTold) {
  const TorchConf conf =
      ReadTorchConf("backend:native,expandable_segments:True,pinned_use_background_threads:True");
  EXPECT_THAT(conf.without_effect, IsEmpty());
  EXPECT_EQ(conf.fraction, 1.0);
}

TEST(TorchConfTest, Read_KeysWithoutEffect_AreTold_ListsInBracketsAreOneValue) {
  const TorchConf conf = ReadTorchConf(
      "max_split_size_mb:128, roundup_power2_divisions:[256:1,512:2,>:4],garbage_collection_threshold:0.8");
  EXPECT_THAT(conf.without_effect,
              ElementsAre("max_split_size_mb", "roundup_power2_divisions", "garbage_collection_threshold"));
}

TEST(TorchConfTest, Read_Fraction_IsTaken_UnlessItIsNone) {
  EXPECT_EQ(ReadTorchConf("per_process_memory_fraction:0.25").fraction, 0.25);
  EXPECT_EQ(ReadTorchConf("per_process_memory_fraction:7").fraction, 1.0);
  EXPECT_EQ(ReadTorchConf("").fraction, 1.0);
}

}  // namespace
}  // namespace weir
