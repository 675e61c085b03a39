// What the figures of a shortage say, and the words for them.
#include "offload/shortage.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/size_text.h"

namespace weir {
namespace {

constexpr size_t kLongestName = 80;     // of an op, in the text
constexpr size_t kLongestOthers = 200;  // of all other ops

std::string Short(const std::string& text, size_t longest) {
  return text.size() <= longest ? text : absl::StrCat(text.substr(0, longest - 3), "...");
}

// As an option takes it: exact, for caps are whole MiB.
std::string AsOption(Bytes bytes) { return absl::StrCat(bytes.RoundedUpTo(MiB(1)) / MiB(1), "MiB"); }

// What stays in VRAM whatever the tiers take.
Bytes Unmovable(const Shortage& shortage) {
  return shortage.Of(Hold::kOtherOps) + shortage.Of(Hold::kForGood) + shortage.Of(Hold::kNoEvidence) +
         shortage.Of(Hold::kFloor) + shortage.Of(Hold::kOutside);
}

std::string Sentence(const Shortage& shortage) {
  if (!shortage.lower_cap.IsZero()) {
    return absl::StrCat("Weir: ", FormatBytes(shortage.held), " held.",
                        shortage.refusal.text.empty() ? "" : " Nothing more could leave: ",
                        shortage.refusal.text, shortage.refusal.text.empty() ? "" : ".");
  }
  std::string text = absl::StrCat(
      "Weir: ", Short(shortage.op, kLongestName),
      shortage.inner.empty() ? "" : absl::StrCat(" (in it ", Short(shortage.inner, kLongestName), ")"),
      " needs ", FormatBytes(shortage.needed), shortage.arguments_only ? " for its arguments" : "",
      " in VRAM at once (", FormatBytes(shortage.more), " more than it has); ",
      shortage.HasCap() ? absl::StrCat("the cap is ", FormatBytes(shortage.cap), " (WEIR_VRAM)")
                        : "no cap is set",
      ", ", FormatBytes(shortage.held), " held.");
  if (shortage.HasCap() && shortage.ceiling < shortage.cap)
    absl::StrAppend(&text, " The driver gave no more: others hold what the cap promises.");
  if (!shortage.refusal.text.empty())
    absl::StrAppend(&text, " Nothing more could leave: ", shortage.refusal.text, ".");
  return text;
}

void AppendHolds(const Shortage& shortage, std::string* text) {
  absl::StrAppend(text, "\n  held in VRAM, by what keeps it there:");
  for (size_t i = 0; i < kHoldCount; ++i) {
    const Hold hold = static_cast<Hold>(i);
    if (shortage.Of(hold).IsZero()) continue;
    absl::StrAppendFormat(text, "\n  %12s  %s", FormatBytes(shortage.Of(hold)), HoldName(hold));
    if (hold == Hold::kOtherOps && !shortage.other_ops.empty())
      absl::StrAppend(text, ": ", Short(absl::StrJoin(shortage.other_ops, ", "), kLongestOthers));
  }
  if (!shortage.waiting.IsZero()) {
    absl::StrAppend(text, "\n  of these ", FormatBytes(shortage.waiting),
                    " are freed and wait for a recorded stream");
  }
}

void AppendLargest(const Shortage& shortage, std::string* text) {
  if (shortage.largest.empty()) return;
  absl::StrAppend(text, "\n  largest tensors:");
  for (const Shortage::Tensor& tensor : shortage.largest) {
    absl::StrAppendFormat(text, "\n  %12s  at 0x%x, %s", FormatBytes(tensor.size), tensor.at.value(),
                          ResidencyName(tensor.state));
    if (tensor.state != Residency::kInRam) absl::StrAppend(text, ", ", HoldName(tensor.hold));
  }
}

std::string Suggestion(const Shortage& shortage) {
  const Bytes smallest = shortage.SmallestCap();
  const std::string raised = absl::StrCat("raise WEIR_VRAM to ", AsOption(smallest));
  if (!shortage.HasCap()) return "set a cap (WEIR_VRAM=auto): without one nothing leaves the card";
  if (const Bytes ram = shortage.EnoughRam(); !ram.IsZero()) {
    if (shortage.refusal.by == Refusal::By::kSystem)
      return absl::StrCat("give the job more RAM: the system refuses what WEIR_RAM allows",
                          shortage.locked_limit.has_value()
                              ? absl::StrCat("; where `ulimit -l` (", FormatBytes(*shortage.locked_limit),
                                             ") counts for the driver, as under WSL, raise it")
                              : "");
    return absl::StrCat("raise WEIR_RAM to ", AsOption(ram));
  }
  if (!shortage.lower_cap.IsZero())
    return absl::StrCat("a cap of ", AsOption(smallest), " or more, or let go of what keeps that much here");
  if (!shortage.card.IsZero() && smallest > shortage.card)
    return absl::StrCat("a smaller batch: the whole card has ", FormatBytes(shortage.card));
  if (shortage.ceiling < shortage.cap)
    return "end what else holds memory on this card, or use a smaller batch";
  return absl::StrCat(raised, ", or use a smaller batch");
}

}  // namespace

const char* HoldName(Hold hold) {
  switch (hold) {
    case Hold::kThisOp:
      return "in use by this op";
    case Hold::kOtherOps:
      return "in use by other ops in flight";
    case Hold::kForGood:
      return "pinned for good (its address was taken, or a collective used it)";
    case Hold::kNoEvidence:
      return "never seen as an op's input";
    case Hold::kFloor:
      return "floor of small tensors";
    case Hold::kMayLeave:
      return "could leave";
    case Hold::kCached:
      return "free, cached";
    case Hold::kOutside:
      return "of memory pools with an allocator of their own";
    case Hold::kInTransit:
      return "taken by requests under way";
  }
  return "?";
}

Bytes Shortage::SmallestCap() const {
  // What the tiers cannot take stays as well.
  const Bytes rest = SaturatingSubtract(Of(Hold::kMayLeave), may_leave_now);
  return (needed + Unmovable(*this) + rest).RoundedUpTo(kPageBytes);
}

Bytes Shortage::ToLeave() const {
  return SaturatingSubtract(needed + Unmovable(*this) + Of(Hold::kMayLeave), std::min(cap, ceiling));
}

Bytes Shortage::EnoughRam() const {
  const bool more_helps =
      !refusal.Everything() && ToLeave() <= Of(Hold::kMayLeave) && Of(Hold::kMayLeave) != may_leave_now;
  return more_helps ? ram_used + would_leave : Bytes();
}

std::string ShortageText(const Shortage& shortage) {
  std::string text = Sentence(shortage);
  AppendHolds(shortage, &text);
  AppendLargest(shortage, &text);
  absl::StrAppend(&text, "\n  RAM tier: ", FormatBytes(shortage.ram_used), " of ",
                  FormatBytes(shortage.ram_budget), " used (WEIR_RAM); NVMe tier: none in this version");
  absl::StrAppend(&text, "\n  smallest cap that ",
                  !shortage.lower_cap.IsZero() ? "holds what cannot leave: "
                  : shortage.arguments_only    ? "holds its arguments: "
                                               : "serves this: ",
                  FormatBytes(shortage.SmallestCap()), " (WEIR_VRAM=", AsOption(shortage.SmallestCap()), ")");
  absl::StrAppend(&text, "\n  try: ", Suggestion(shortage));
  return text;
}

}  // namespace weir
