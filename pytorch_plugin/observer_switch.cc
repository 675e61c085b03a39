#include "pytorch_plugin/observer_switch.h"

#include <c10/macros/Macros.h>

#include <mutex>

#include "pytorch_plugin/foreign_code.h"
#include "pytorch_plugin/op_guard.h"
#include "pytorch_plugin/safe_points.h"
#include "pytorch_plugin/thread_state.h"
#include "pytorch_plugin/torch_version.h"

namespace weir::plugin {
namespace {

constexpr uint32_t kOpsBetweenQuestions = 64;

// One switch at a time. Taken before the core's locks; under it nobody waits for the GPU, the GIL or a turn.
std::mutex& Switching() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

// A job without a cap, or that has stood down, has no observer at all: it is not ours to begin.
bool resting = false;  // guarded by Switching()

bool EndWatch(bool if_quiet) {
  // R3: where only known consumers may be given what leaves, all of them have to be seen.
  if (kOnlyKnownConsumers) return false;
  std::lock_guard<std::mutex> lock(Switching());
  if (!Observing() || !SafePointsPassed() || !CanFindSafePoints()) return false;
  if (weir_end_watch(if_quiet ? 1 : 0) == 0) return false;
  DisableObserver();
  resting = true;
  return true;
}

void BeginWatch() {
  std::lock_guard<std::mutex> lock(Switching());
  if (!resting) return;
  resting = false;
  ForgetSafePoints();
  weir_begin_watch();
  EnableObserver();
  CountLooks();
}

// As the core has it: while another thread ends watching the core knows of it first.
bool IsWatched() {
  std::lock_guard<std::mutex> lock(Switching());
  return Observing();
}

}  // namespace

void EndWatchIfQuiet() {
  if (++Thread().ended % kOpsBetweenQuestions == 0) EndWatch(/*if_quiet=*/true);
}

void NoteUnwatchedAllocation() {
  if (C10_UNLIKELY(!Observing())) Thread();
}

void BeginWatchIfWanted() {
  if (C10_UNLIKELY(!Observing() && weir_watch_wanted() != 0)) BeginWatch();
}

const char* VetoOfEviction() {
  if (!IsWatched()) BeginWatch();
  if (!LookForSafePoints()) {
    return "Weir has only just begun to watch the job's ops again, and an op that it did not see may still "
           "use what would "
           "leave (WEIR_WATCH=always watches from the start)";
  }
  return kOnlyKnownConsumers ? ForeignCode() : nullptr;
}

}  // namespace weir::plugin

int weir_plugin_switch(int on) {
  using namespace weir::plugin;
  if (on != 0) {
    BeginWatch();
  } else {
    EndWatch(/*if_quiet=*/false);
  }
  return Observing() ? 1 : 0;
}
