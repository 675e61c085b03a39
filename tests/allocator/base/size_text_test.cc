#include "allocator/base/size_text.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(ParseSize, AcceptedForms_GiveTheirBytes) {
  const std::pair<const char*, Bytes> kCases[] = {
      {"24GiB", GiB(24)},
      {"24G", GiB(24)},
      {"24GB", Bytes(24'000'000'000)},
      {"512MiB", MiB(512)},
      {"512M", MiB(512)},
      {"512MB", Bytes(512'000'000)},
      {"7K", KiB(7)},
      {"7KiB", KiB(7)},
      {"7KB", Bytes(7'000)},
      {"2T", GiB(2048)},
      {"2TiB", GiB(2048)},
      {"2TB", Bytes(2'000'000'000'000)},
      {"1048576", MiB(1)},
      {"12B", Bytes(12)},
      {"0", Bytes(0)},
      {"1.5GiB", MiB(1536)},
      {"0.5G", MiB(512)},
      {"1.5GB", Bytes(1'500'000'000)},
      {"18446744073709551615", Bytes::Max()},
  };
  for (const auto& [text, bytes] : kCases) {
    const absl::StatusOr<Bytes> parsed = ParseSize(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status();
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ParseSize, OtherForms_NameTheTextAndWhatIsAccepted) {
  for (const char* text : {"24Gb", "24g", "24gib", "-1",     "+1",  "",     " 1G",   "1G ", "1 G",  "G",
                           "1.5",  "1.",  ".5G",   "1.5.5G", "1e9", "0x10", "1GiBB", "80%", "auto", "1,5G"}) {
    const absl::StatusOr<Bytes> parsed = ParseSize(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.status().message().find(absl::StrCat("\"", text, "\"")), absl::string_view::npos)
        << text;
    EXPECT_NE(parsed.status().message().find("24GiB"), absl::string_view::npos) << text;
  }
}

TEST(ParseSize, MoreThan64Bits_IsAnError) {
  for (const char* text : {"18446744073709551616", "17000000TiB", "17000000.5TiB", "99999999999999999999T"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
}

TEST(ParsePercent, InRange_Accepted) {
  EXPECT_EQ(ParsePercent("80%").value(), 80);
  EXPECT_EQ(ParsePercent("12.5%").value(), 12.5);
  EXPECT_EQ(ParsePercent("100%").value(), 100);
}

TEST(ParsePercent, OutOfRangeOrForm_IsAnError) {
  for (const char* text : {"0%", "101%", "-5%", "%", "80", "80%%", "", "8 0%"})
    EXPECT_FALSE(ParsePercent(text).ok()) << text;
}

TEST(FormatBytes, EachUnit_TwoDecimals) {
  EXPECT_EQ(FormatBytes(Bytes(0)), "0 B");
  EXPECT_EQ(FormatBytes(Bytes(1023)), "1023 B");
  EXPECT_EQ(FormatBytes(KiB(1)), "1.00 KiB");
  EXPECT_EQ(FormatBytes(MiB(1536)), "1.50 GiB");
  EXPECT_EQ(FormatBytes(GiB(2048)), "2.00 TiB");
  EXPECT_EQ(FormatBytes(GiB(2048 * 1024)), "2048.00 TiB");
}

}  // namespace
}  // namespace weir
