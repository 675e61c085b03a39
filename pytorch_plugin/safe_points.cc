#include "pytorch_plugin/safe_points.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <set>
#include <unordered_map>
#include <vector>

#include "allocator/base/safeguards.h"
#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/python_threads.h"
#include "pytorch_plugin/thread_state.h"

namespace weir::plugin {
namespace {

std::atomic<bool> all_passed{true};
std::atomic<bool> looks_count{true};  // the observer is on: what begins after a look is seen
std::atomic<bool> asked{false};       // Python's main thread has a call waiting

std::atomic<uint32_t> times_begun{0};
std::atomic<uint32_t> events{0};  // since then, until all are passed

// Since watching began. Never destroyed.
struct Looks {
  std::atomic_flag looking;                            // whoever comes second does without
  uint32_t of = 0;                                     // of `times_begun`
  std::set<uint64_t> passed;                           // Python threads, by id
  std::unordered_map<uint64_t, PythonThread> earlier;  // where the others were
};

Looks& All() {
  static auto* looks = new Looks;
  return *looks;
}

bool Passed(Looks& looks, const PythonThread& thread) {
  if (looks.passed.contains(thread.id)) return true;
  const auto [place, first] = looks.earlier.emplace(thread.id, thread);
  const PythonThread& earlier = place->second;
  const bool moved = !first && (earlier.frame != thread.frame || earlier.instruction != thread.instruction);
  // Without a frame it is in code that is not Python's, and nothing is known of it.
  if (thread.frame == nullptr || (!moved && !thread.waits)) return false;
  looks.passed.insert(thread.id);
  return true;
}

bool AllPassed(Looks& looks, const std::vector<PythonThread>& threads) {
  const bool backward =
      std::any_of(threads.begin(), threads.end(), [](const PythonThread& thread) { return thread.backward; });
  bool all = true;
  ForEachThread([&](const ThreadState& state) {
    if (state.engine) {
      all = all && !backward;
      return;
    }
    const auto thread = std::find_if(threads.begin(), threads.end(),
                                     [&](const PythonThread& one) { return one.id == state.python_id; });
    all = (thread != threads.end() && Passed(looks, *thread)) && all;  // looks at each
  });
  return all;
}

// The GIL is held. `between`: the calling thread is between two instructions. Watching cannot end, and so not begin again,
// before all are passed.
void Look(bool between) {
  Looks& looks = All();
  if (looks.looking.test_and_set()) return;
  if (!all_passed.load() && looks_count.load()) {
    if (looks.of != times_begun.load()) {
      looks.of = times_begun.load();
      looks.passed.clear();
      looks.earlier.clear();
    }
    if (between) looks.passed.insert(PythonThreadId());
    if (AllPassed(looks, PythonThreads())) {
      // A collective on the CPU may still be at work on what it was given unseen, until an op is given that again.
      if (HasHostCollectives()) weir_forget_evidence();
      all_passed.store(true);
    }
  }
  looks.looking.clear();
}

int LookBetween(void*) {
  asked.store(false);
  if (InForkedChild()) return 0;  // the call was waiting when the process forked
  if (HasPythonThreads()) Look(/*between=*/true);
  return 0;
}

void AskMainThread() {
  if (!asked.exchange(true) && !CallBetweenInstructions(&LookBetween)) asked.store(false);
}

}  // namespace

bool CanFindSafePoints() {
  if (!HasPythonThreads()) return false;
  bool can = true;
  ForEachThread([&](const ThreadState& state) { can = can && (state.engine || state.python_id != 0); });
  return can;
}

void ForgetSafePoints() {
  times_begun.fetch_add(1);
  events.store(0);
  looks_count.store(false);  // first: whoever sees that not all are passed sees this too
  all_passed.store(Without(Safeguard::kSafePointsPassed));
}

void CountLooks() {
  looks_count.store(true);
  AskMainThread();
}

bool SafePointsPassed() { return all_passed.load(std::memory_order_relaxed); }

bool LookForSafePoints() {
  if (SafePointsPassed()) return true;
  AskMainThread();
  if (const WithGil gil; gil) Look(/*between=*/false);
  return SafePointsPassed();
}

void LookNowAndThen() {
  constexpr uint32_t kAtMost = 1024;
  const uint32_t seen = events.fetch_add(1, std::memory_order_relaxed) + 1;
  if (std::has_single_bit(seen) || seen % kAtMost == 0) LookForSafePoints();
}

}  // namespace weir::plugin
