#include "tools/emulated_gpu/device/timing.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"

namespace weir::emulated {
namespace {

// All that is known at one moment: when what was enqueued until then is done, and what was done for it.
struct Mark {
  Nanos done = 0;
  Usage usage{};
  Nanos waited[kWaits] = {}, worked[kBusy] = {};
};

struct Steps {
  std::mutex mutex;
  std::string kind;  // guarded by mutex, as all of this
  std::vector<Mark> ends;
};
auto& steps = *new Steps;

Mark TakeMark() {
  Mark mark;
  std::lock_guard<std::mutex> lock(Order().mutex);
  mark.done = std::max(LatestDoneLocked(), LatestHost());
  mark.usage = UsageLocked();
  for (size_t i = 0; i < kWaits; ++i) mark.waited[i] = Waited(static_cast<Wait>(i));
  for (size_t i = 0; i < kBusy; ++i) mark.worked[i] = Worked(static_cast<Busy>(i));
  return mark;
}

double Milliseconds(Nanos time) { return static_cast<double>(time) * 1e-6; }

std::string Share(const char* name, Nanos part, Nanos whole) {
  char text[80];
  std::snprintf(text, sizeof text, " %s %.1f %%", name,
                100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

// " a 1.0 %, b 2.0 %" of those that are not 0.
template <typename Kind, size_t kCount>
std::string Shares(const Nanos (&from)[kCount], const Nanos (&to)[kCount], Nanos whole) {
  std::string text;
  for (size_t i = 0; i < kCount; ++i) {
    if (to[i] == from[i]) continue;
    text += (text.empty() ? "" : ",") + Share(NameOf(static_cast<Kind>(i)), to[i] - from[i], whole);
  }
  return text.empty() ? " nothing" : text;
}

// What lies between two marks.
void PrintShares(const Mark& from, const Mark& to) {
  const Nanos whole = std::max<Nanos>(to.done - from.done, 1);
  Note("timing: busy%s; SMs idle%s,%s", Shares<Engine>(from.usage.busy, to.usage.busy, whole).c_str(),
       Share("for the host", to.usage.idle_for_host - from.usage.idle_for_host, whole).c_str(),
       Share("for copies and other streams", to.usage.idle_for_others - from.usage.idle_for_others, whole)
           .c_str());
  Note("timing: host threads busy with%s; blocked on%s", Shares<Busy>(from.worked, to.worked, whole).c_str(),
       Shares<Wait>(from.waited, to.waited, whole).c_str());
}

// Lengths of the steps, the shortest first; without the first step, which allocates.
std::vector<Nanos> StepsLocked() {
  std::vector<Nanos> lengths;
  for (size_t i = 1; i < steps.ends.size(); ++i)
    lengths.push_back(steps.ends[i].done - steps.ends[i - 1].done);
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

}  // namespace

void EndStep(const char* name) {
  FinishOps();
  const Mark mark = TakeMark();
  std::lock_guard<std::mutex> lock(steps.mutex);
  if (steps.ends.empty()) steps.kind = name;
  if (steps.kind == name) steps.ends.push_back(mark);
}

void TimingAtExit() {
  if (!Settings().timing) return;
  const Mark now = TakeMark();
  std::lock_guard<std::mutex> lock(steps.mutex);
  const std::vector<Nanos> lengths = StepsLocked();
  if (lengths.empty()) {
    Note("timing: %.3f ms in all; no steps were seen", Milliseconds(now.done));
    PrintShares({}, now);
    return;
  }
  Note("timing: step %.3f ms, the median of %zu (%.3f to %.3f); %.3f ms in all",
       Milliseconds(lengths[lengths.size() / 2]), lengths.size(), Milliseconds(lengths.front()),
       Milliseconds(lengths.back()), Milliseconds(now.done));
  PrintShares(steps.ends.front(), steps.ends.back());
}

Nanos TimeInAll() { return TakeMark().done; }

StepTimes TimesOfSteps() {
  std::lock_guard<std::mutex> lock(steps.mutex);
  const std::vector<Nanos> lengths = StepsLocked();
  return lengths.empty() ? StepTimes{} : StepTimes{lengths.size(), lengths[lengths.size() / 2]};
}

}  // namespace weir::emulated
