// Profiles as text: what is read, and that each mistake is told by file, line and what was expected there.
#include "tools/emulated_gpu/device/profile_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/emulated_gpu/round_profile.h"

namespace weir::emulated {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string MistakeIn(const std::string& text) {
  Profile profile;
  std::string mistake;
  EXPECT_FALSE(ParseProfile(text, "mine", "card.txt", &profile, &mistake)) << text;
  return mistake;
}

TEST(ProfileText, KnownProfiles_AreCompleteAndEachLineHasASource) {
  std::istringstream names(KnownProfileNames());
  int count = 0;
  for (std::string name; names >> name; ++count) {
    Profile profile;
    std::string mistake;
    EXPECT_TRUE(FindProfile(name, &profile, &mistake)) << mistake;
    EXPECT_EQ(profile.name, name);
    std::istringstream lines(KnownProfile(name));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_THAT(line, ::testing::AnyOf("", ::testing::ContainsRegex("# \\[[RDU]\\]"))) << name;
    }
  }
  EXPECT_EQ(count, 5);
}

TEST(ProfileText, LinesAfterTheBase_ReplaceItsValues) {
  Profile base, mine;
  std::string mistake;
  ASSERT_TRUE(FindProfile("a100-80g", &base, &mistake)) << mistake;
  ASSERT_TRUE(ParseProfile(
      "# my card\n\nbase a100-80g  # nearly\n  h2d_gbps 12.5 # measured\ndevice_name Card of mine #\n"
      "kernel_us 0\nl2_mib 6\n",
      "mine", "card.txt", &mine, &mistake))
      << mistake;
  EXPECT_EQ(mine.name, "mine");
  EXPECT_EQ(mine.device_name, "Card of mine");
  EXPECT_EQ(mine.costs.h2d_gbps, 12.5);
  EXPECT_EQ(mine.costs.kernel_us, 0);
  EXPECT_EQ(mine.l2_bytes, size_t{6} << 20);
  EXPECT_EQ(mine.costs.d2h_gbps, base.costs.d2h_gbps);
  EXPECT_EQ(mine.vram_mib, base.vram_mib);
}

TEST(ProfileText, WithoutABase_EveryNumberIsNeeded) {
  std::string text(KnownProfile("h100"));
  Profile profile;
  std::string mistake;
  EXPECT_TRUE(ParseProfile(text, "mine", "card.txt", &profile, &mistake)) << mistake;
  const size_t at = text.find("memory_gbps");
  text.erase(at, text.find('\n', at) - at);
  EXPECT_THAT(MistakeIn(text),
              AllOf(HasSubstr("card.txt: the profile lacks memory_gbps;"), HasSubstr("base NAME")));
  EXPECT_THAT(MistakeIn(""), AllOf(HasSubstr("vram_mib"), HasSubstr("device_name")));
}

TEST(ProfileText, Mistakes_AreToldByFileLineAndWhatWasExpected) {
  EXPECT_THAT(MistakeIn("base h200\n\nbandwidth 5\n"),
              AllOf(HasSubstr("card.txt:3: expected"), HasSubstr("\"bandwidth\"")));
  EXPECT_THAT(MistakeIn("base v100\n"),
              AllOf(HasSubstr("card.txt:1: expected"), HasSubstr("h200 h100 a100-80g")));
  EXPECT_THAT(MistakeIn("base h200\nh2d_gbps fast\n"),
              AllOf(HasSubstr("card.txt:2: expected a number above 0 for h2d_gbps"), HasSubstr("\"fast\"")));
  EXPECT_THAT(MistakeIn("base h200\nh2d_gbps 0\n"), HasSubstr("card.txt:2: expected a number above 0"));
  EXPECT_THAT(MistakeIn("base h200\nh2d_gbps -1\n"), HasSubstr("card.txt:2: expected a number above 0"));
  EXPECT_THAT(MistakeIn("base h200\nkernel_us -1\n"), HasSubstr("card.txt:2: expected a number, 0 or more"));
  EXPECT_THAT(MistakeIn("base h200\nkernel_us nan\n"), HasSubstr("card.txt:2: expected a number, 0 or more"));
  EXPECT_THAT(MistakeIn("base h200\nh2d_gbps 1e300\n"), HasSubstr("card.txt:2: expected a number above 0"));
  EXPECT_THAT(MistakeIn("base h200\nh2d_gbps 5 GB\n"), HasSubstr("\"5 GB\""));
  EXPECT_THAT(MistakeIn("base h200\nmultiprocessors 1.5\n"),
              HasSubstr("card.txt:2: expected a whole number"));
  EXPECT_THAT(MistakeIn("base h200\nh2d_gbps # 5\n"),
              HasSubstr("card.txt:2: expected `h2d_gbps VALUE # SOURCE`"));
  EXPECT_THAT(MistakeIn("base h200\nop_us 1\nop_us 2\n"),
              AllOf(HasSubstr("card.txt:3"), HasSubstr("line 2")));
  EXPECT_THAT(MistakeIn("op_us 1\nbase h200\n"),
              HasSubstr("card.txt:2: expected `base` once, before all other keys"));
  EXPECT_THAT(MistakeIn("base h200\nbase h100\n"), HasSubstr("card.txt:2: expected `base` once"));
}

TEST(ProfileText, UnknownNames_ListTheKnown) {
  Profile profile;
  std::string mistake;
  EXPECT_FALSE(FindProfile("h300", &profile, &mistake));
  EXPECT_THAT(mistake, HasSubstr("known are h200 h100 a100-80g rtx4090 rtx3060-12g"));
  EXPECT_FALSE(FindProfile("/no/such/file", &profile, &mistake));
  EXPECT_THAT(mistake, AllOf(HasSubstr("/no/such/file: cannot be read"), HasSubstr("No such file")));
  EXPECT_FALSE(FindProfile("/tmp", &profile, &mistake));
  EXPECT_THAT(mistake, HasSubstr("/tmp: cannot be read"));
}

TEST(ProfileText, Files_AreReadByTheirPath) {
  const ProfileFile file(kRoundProfile);
  Profile profile;
  std::string mistake;
  ASSERT_TRUE(FindProfile(file.path(), &profile, &mistake)) << mistake;
  EXPECT_EQ(profile.name, file.path().substr(5));
  EXPECT_EQ(profile.costs.memory_gbps, 2);
}

}  // namespace
}  // namespace weir::emulated
