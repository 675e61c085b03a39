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
  Nanos waited[kWaits] = {};
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
  return mark;
}

double Milliseconds(Nanos time) { return static_cast<double>(time) * 1e-6; }

std::string Share(const char* name, Nanos part, Nanos whole) {
  char text[80];
  std::snprintf(text, sizeof text, " %s %.1f %%", name,
                100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

// What lies between two marks.
void PrintShares(const Mark& from, const Mark& to) {
  const Nanos whole = std::max<Nanos>(to.done - from.done, 1);
  std::string busy, idle, waits;
  for (size_t i = 0; i < kEngines; ++i) {
    const Nanos time = to.usage.busy[i] - from.usage.busy[i];
    if (i == 0 || time > 0)
      busy += (busy.empty() ? "" : ",") + Share(NameOf(static_cast<Engine>(i)), time, whole);
  }
  idle = Share("for the host", to.usage.idle_for_host - from.usage.idle_for_host, whole) + "," +
         Share("for copies and other streams", to.usage.idle_for_others - from.usage.idle_for_others, whole);
  for (size_t i = 0; i < kWaits; ++i) {
    const Nanos time = to.waited[i] - from.waited[i];
    if (time > 0) waits += (waits.empty() ? "" : ",") + Share(NameOf(static_cast<Wait>(i)), time, whole);
  }
  Note("timing: busy%s; SMs idle%s", busy.c_str(), idle.c_str());
  Note("timing: host threads blocked on%s", waits.empty() ? " nothing" : waits.c_str());
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
  const std::vector<Mark>& ends = steps.ends;
  if (ends.size() < 2) {
    Note("timing: %.3f ms in all; no steps were seen", Milliseconds(now.done));
    PrintShares({}, now);
    return;
  }
  std::vector<Nanos> lengths;
  for (size_t i = 1; i < ends.size(); ++i) lengths.push_back(ends[i].done - ends[i - 1].done);
  std::sort(lengths.begin(), lengths.end());
  Note("timing: step %.3f ms, the median of %zu (%.3f to %.3f); %.3f ms in all",
       Milliseconds(lengths[lengths.size() / 2]), lengths.size(), Milliseconds(lengths.front()),
       Milliseconds(lengths.back()), Milliseconds(now.done));
  PrintShares(ends.front(), ends.back());
}

}  // namespace weir::emulated
