// A request that could not be served, in figures: what is in VRAM and why it cannot leave, what the tiers refused, and the
// smallest cap that would have served it. A value, made by Pager while the op still holds its pins; no lock, any thread.
#ifndef WEIR_OFFLOAD_SHORTAGE_H_
#define WEIR_OFFLOAD_SHORTAGE_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/extent.h"

namespace weir {

// Why bytes are in VRAM at the moment of refusal; each frame that is held counts once, and so does what is held outside.
enum class Hold : uint8_t {
  kThisOp,      // an argument or a result of the op that asks
  kOtherOps,    // the same of ops in flight on other threads
  kForGood,     // a pointer to it escaped, or a collective was given it
  kNoEvidence,  // no op has been seen to take it as an input, so its storage is unknown (R1)
  kFloor,       // slabs of small tensors
  kMayLeave,    // could have left, had a tier taken it
  kCached,      // holds nothing
  kOutside,     // other allocators hold them for memory pools of the job
  kInTransit,   // frames that a request has taken and not mapped yet, this one's too
};
inline constexpr size_t kHoldCount = 9;
const char* HoldName(Hold hold);

// Why the last attempt to evict took nothing (more).
struct Refusal {
  enum class By { kNobody, kUnseenThread, kTorchSide, kRamBudget, kSystem };
  By by = By::kNobody;
  std::string text;  // empty: nothing was left that may leave
  bool Everything() const { return by == By::kUnseenThread || by == By::kTorchSide; }
};

struct Shortage {
  std::string op, inner;        // outermost in flight, and what runs inside it; empty: the same
  bool arguments_only = false;  // it was about to start: what it allocates itself comes on top
  Bytes more;                   // of the request that failed
  Bytes needed;                 // all that the op has to have in VRAM at once
  Bytes cap, ceiling;           // ceiling below the cap: the driver gave no more. Bytes::Max(): no cap
  Bytes lower_cap;              // what does not fit is a cap that is to be this low; zero: a request
  Bytes card;                   // its total; zero: not known
  Bytes held;
  std::array<Bytes, kHoldCount> by_hold{};
  Bytes waiting;  // freed by the job, waiting for a recorded stream; counted above by what it is
  std::vector<std::string> other_ops;  // kOtherOps, by name
  struct Tensor {
    DeviceAddr at;
    Bytes size;  // as requested
    Residency state;
    Hold hold;  // where it is in VRAM
  };
  std::vector<Tensor> largest;  // of all that are alive, largest first
  Bytes ram_used, ram_budget;
  Bytes may_leave_now;  // of kMayLeave, what the RAM that is left could still take
  Bytes would_leave;    // of kMayLeave, what the policy would choose to serve this if RAM were no limit
  Refusal refusal;
  std::optional<Bytes> locked_limit;  // `ulimit -l`

  Bytes Of(Hold hold) const { return by_hold[static_cast<size_t>(hold)]; }
  bool HasCap() const { return cap != Bytes::Max(); }
  // The least cap under which this request would have been served with the same RAM budget: whole frames.
  Bytes SmallestCap() const;
  // What of kMayLeave has to leave at the present cap; more than that is: it cannot be served.
  Bytes ToLeave() const;
  // The least RAM budget that lets enough leave at the present cap; zero: RAM would not help.
  Bytes EnoughRam() const;
};

// Sentence, table and suggestion, one line each, ending without a newline.
std::string ShortageText(const Shortage& shortage);

}  // namespace weir

#endif  // WEIR_OFFLOAD_SHORTAGE_H_
