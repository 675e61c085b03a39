// The table of an out-of-memory error: its figures add up, and the smallest cap that it names is true.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/offload/pager_fixture.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kPage = kPageBytes.count();

// The cap that the text names, in pages.
uint64_t SmallestCapIn(const std::string& text) {
  const size_t at = text.find("(WEIR_VRAM=");
  if (at == std::string::npos) return 0;
  return std::stoull(text.substr(at + 11)) * MiB(1).count() / kPage;
}

// Bytes of the lines of "held in VRAM", which are whole MiB here.
uint64_t HeldInTable(const std::string& text) {
  uint64_t sum = 0;
  size_t at = text.find("held in VRAM");
  const size_t end = text.find("largest tensors");
  while ((at = text.find("\n  ", at + 1)) < end && std::isspace(text[at + 3]) != 0) {
    sum += std::stoull(text.substr(at + 3));
  }
  return sum * MiB(1).count();
}

// An op over `arguments` tensors of three pages each that makes one of two, while another of four pages may leave.
class Job {
 public:
  explicit Job(PageCount cap) : fixture_(cap, PageCount(64)) {}

  absl::Status Run(int arguments) {
    std::vector<const Tensor*> all;
    tensors_.push_back(fixture_.Make(kPageBytes * 4, 9));
    for (uint32_t i = 0; i < static_cast<uint32_t>(arguments); ++i)
      tensors_.push_back(fixture_.Make(kPageBytes * 3, i));
    for (size_t i = 1; i < tensors_.size(); ++i) all.push_back(&tensors_[i]);
    OpScope op(fixture_.op, "aten::greedy");
    absl::Status status = fixture_.Touch(all, fixture_.op);
    return status.ok() ? fixture_.device->Allocate(kPageBytes * 2, kStreamA, fixture_.op).status() : status;
  }

 private:
  std::vector<Tensor> tensors_;
  PagerFixture fixture_;
};

TEST(ShortageTest, Allocation_AtTheCapThatItNames_PassesAndOneFrameBelowFails) {
  const std::string text(Job(PageCount(7)).Run(2).message());
  ASSERT_EQ(SmallestCapIn(text), 8u) << text;  // two arguments and the result
  EXPECT_TRUE(Job(PageCount(8)).Run(2).ok());
  EXPECT_THAT(text, AllOf(HasSubstr("aten::greedy needs 16.00 MiB"), HasSubstr("raise WEIR_VRAM to 16MiB")));
}

TEST(ShortageTest, Touch_CountsAllArgumentsThatAreNotThereYet) {
  const std::string text(Job(PageCount(7)).Run(4).message());
  EXPECT_EQ(SmallestCapIn(text), 12u) << text;
  EXPECT_THAT(text, HasSubstr("aten::greedy needs 24.00 MiB for its arguments"));
  // At that cap it starts; what it makes comes on top.
  EXPECT_THAT(std::string(Job(PageCount(12)).Run(4).message()), HasSubstr("needs 28.00 MiB in VRAM"));
  EXPECT_THAT(std::string(Job(PageCount(11)).Run(4).message()), HasSubstr("for its arguments"));
}

class ShortageTableTest : public ::testing::Test {
 protected:
  std::string Refused(Bytes size) {
    absl::Status status = fixture_.device->Allocate(size, kStreamA, fixture_.op).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    return std::string(status.message());
  }
  PagerFixture fixture_{PageCount(24), PageCount(4)};
};

// C02
TEST_F(ShortageTableTest, EveryClass_HasItsBytesAndTheyAddUpToWhatIsHeld) {
  Tensor escaped = fixture_.Make(kLarge, 1), used = fixture_.Make(kPageBytes * 3, 2);
  ASSERT_TRUE(fixture_.pager.PinForGood(escaped.at, fixture_.no_op, kStreamA).ok());
  fixture_.Allocate(kSmall);
  fixture_.Allocate(kLarge);  // no op has used it
  Tensor spare = fixture_.Make(kPageBytes * 5, 3);
  Tensor theirs = fixture_.Make(kPageBytes * 4, 4);
  OpPins other;
  OpScope other_op(other, "aten::elsewhere"), op(fixture_.op, "aten::here");
  ASSERT_TRUE(fixture_.Touch({&theirs}, other).ok());
  ASSERT_TRUE(fixture_.Touch({&used}, fixture_.op).ok());
  const std::string text = Refused(kPageBytes * 25);  // more than the cap: nobody is waited for
  EXPECT_EQ(HeldInTable(text), fixture_.device->frames().held().bytes().count()) << text;
  EXPECT_THAT(text, ContainsRegex("  6.00 MiB  in use by this op\n"));
  EXPECT_THAT(text, ContainsRegex("  8.00 MiB  in use by other ops in flight: aten::elsewhere\n"));
  EXPECT_THAT(text, ContainsRegex("  4.00 MiB  pinned for good"));
  EXPECT_THAT(text, ContainsRegex("  4.00 MiB  never seen as an op's input\n"));
  EXPECT_THAT(text, ContainsRegex("  2.00 MiB  floor of small tensors\n"));
  EXPECT_THAT(text, ContainsRegex(" 10.00 MiB  could leave\n"));
  // 4 pages of RAM cannot take the one of 5.
  EXPECT_EQ(SmallestCapIn(text), 25u + 3 + 4 + 2 + 2 + 1 + 5) << text;
}

TEST(ShortageTest, Largest_AreTheFiveLargestWhereverTheyAre) {
  std::vector<Tensor> tensors;
  PagerFixture fixture{PageCount(24), PageCount(64)};
  for (uint64_t pages : {2, 7, 3, 6, 4, 8}) tensors.push_back(fixture.Make(kPageBytes * pages, 1));
  ASSERT_EQ(fixture.state(tensors[1]), Residency::kInRam);
  const std::string text(
      fixture.device->Allocate(kPageBytes * 25, kStreamA, fixture.no_op).status().message());
  size_t at = text.find("largest tensors");
  for (uint64_t pages : {8, 7, 6, 4, 3}) {
    at = text.find(absl::StrCat(" ", pages * 2, ".00 MiB  at 0x"), at);
    ASSERT_NE(at, text.npos) << text;
  }
  EXPECT_THAT(text, Not(ContainsRegex("  4.00 MiB  at")));
  EXPECT_THAT(text, ContainsRegex("14.00 MiB  at 0x[0-9a-f]+, in RAM\n"));
}

TEST_F(ShortageTableTest, RamBudgetUsedUp_NamesTheBudgetThatIsEnough) {
  std::vector<Tensor> tensors;
  for (uint32_t i = 0; i < 14; ++i) tensors.push_back(fixture_.Make(kLarge, i));
  const std::string text = Refused(kPageBytes * 3);
  EXPECT_THAT(text, HasSubstr("RAM tier: 8.00 MiB of 8.00 MiB used (WEIR_RAM)"));
  // 24 pages are in VRAM and 4 in RAM; 3 more need two tensors of 2 out.
  EXPECT_THAT(text, HasSubstr("try: raise WEIR_RAM to 16MiB"));
  EXPECT_EQ(SmallestCapIn(text), 27u) << text;
}

// C82: the platform caps pinned memory far below RAM; the error must not look like one of the card.
TEST(ShortageTest, SystemRefusesPinnedMemory_IsNamedAndNotTheBudget) {
  std::vector<Tensor> tensors;
  PagerFixture fixture{PageCount(8), PageCount(64)};
  fixture.driver.SetHostLimit(kPageBytes * 4);
  for (uint32_t i = 0; i < 6; ++i) tensors.push_back(fixture.Make(kLarge, i));
  const std::string text(fixture.device->Allocate(kLarge, kStreamA, fixture.no_op).status().message());
  EXPECT_THAT(text, AllOf(HasSubstr("Nothing more could leave: the system refused 4.00 MiB of pinned memory"),
                          HasSubstr("RAM tier: 8.00 MiB of 128.00 MiB used"),
                          HasSubstr("try: give the job more RAM")));
  EXPECT_EQ(SmallestCapIn(text), 10u) << text;
}

TEST_F(ShortageTableTest, VetoOrUnseenThread_EverythingStays) {
  Tensor tensor = fixture_.Make(kPageBytes * 10, 1);
  fixture_.pager.AddBlindThread(1);
  const std::string text = Refused(kPageBytes * 20);
  fixture_.pager.AddBlindThread(-1);
  EXPECT_THAT(text, HasSubstr("Nothing more could leave: a thread runs with record functions disabled"));
  EXPECT_EQ(SmallestCapIn(text), 30u) << text;
}

TEST(ShortageTextTest, LongNames_AreCut) {
  Shortage shortage;
  shortage.op = std::string(5000, 'n');
  shortage.other_ops = std::vector<std::string>(100, "aten::some_operator");
  shortage.by_hold[static_cast<size_t>(Hold::kOtherOps)] = kLarge;
  EXPECT_LT(ShortageText(shortage).size(), 1500u);
}

TEST(ShortageTextTest, NoCap_SaysThatOneIsMissing) {
  Shortage shortage;
  shortage.cap = shortage.ceiling = Bytes::Max();
  EXPECT_THAT(ShortageText(shortage), AllOf(HasSubstr("no cap is set"), HasSubstr("WEIR_VRAM=auto")));
}

TEST(ShortageTextTest, MoreThanTheCardHas_NoCapIsSuggested) {
  Shortage shortage;
  shortage.cap = shortage.ceiling = GiB(10);
  shortage.card = GiB(16);
  shortage.needed = GiB(17);
  EXPECT_THAT(ShortageText(shortage), HasSubstr("try: a smaller batch: the whole card has 16.00 GiB"));
}

}  // namespace
}  // namespace weir
