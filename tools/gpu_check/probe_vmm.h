// Part of probe.cc: what virtual memory management costs, whom it makes wait, and whether aliases agree.
#ifndef WEIR_GPU_CHECK_PROBE_VMM_H_
#define WEIR_GPU_CHECK_PROBE_VMM_H_

#include <atomic>
#include <thread>
#include <utility>

#include "probe_kernels.h"

namespace {

// Each round maps a frame at one address more, keeps the older mappings, and looks for bytes that one address
// shows and another does not.
template <typename Put, typename CountBad>
void AliasRounds(const char* what, const Put& put, const CountBad& count_bad) {
  constexpr size_t kSize = 4 * kMiB;
  constexpr int kRounds = 16;
  const Frame frame = Create(kSize);
  Ptr before = MapAt(Reserve(kSize), kSize, frame);
  double bad = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    const Ptr now = MapAt(Reserve(kSize), kSize, frame);
    put(before, 0x1000 + round, kSize);
    bad += count_bad(now, 0x1000 + round, kSize);
    put(now, 0x2000 + round, kSize);
    bad += count_bad(before, 0x2000 + round, kSize);
    before = now;
  }
  Line("%s: %.0f of %.0f words differ%s", what, bad, 2.0 * kRounds * kSize / 4,
       bad == 0 ? "" : "  <-- NOT COHERENT");
  Figure(std::string(what) + " differing words", bad, "");
}

void AliasesByCopies() {
  StartWithVmm();
  const Stream stream = NewStream();
  unsigned* host = Pinned(4 * kMiB);
  const Ptr aside = NewRange(4 * kMiB);
  const auto put = [&](Ptr to, unsigned value, size_t size) { MUST(Memset(to, value, size / 4, stream)); };
  const auto bad_words = [&](size_t size, unsigned value) {
    MUST(Wait(stream));
    return static_cast<double>(size / 4) - static_cast<double>(std::count(host, host + size / 4, value));
  };
  AliasRounds("memset, then copy out after it has completed", put,
              [&](Ptr from, unsigned value, size_t size) {
                MUST(Wait(stream));
                MUST(ToHost(host, from, size, stream));
                return bad_words(size, value);
              });
  AliasRounds("memset, then copies in stream order", put, [&](Ptr from, unsigned value, size_t size) {
    MUST(OnDevice(aside, from, size, stream));
    MUST(ToHost(host, aside, size, stream));
    return bad_words(size, value);
  });
}

void AliasesByKernels() {
  StartWithVmm();
  Kernels kernels;
  const Stream stream = NewStream(), other = NewStream();
  const Event event = NewEvent();
  unsigned seen = 0;
  const auto put = [&](Ptr to, unsigned value, size_t size) { kernels.Fill(to, value, size, stream); };
  const auto newly_bad = [&] {
    const unsigned now = kernels.Count();
    return static_cast<double>(now - std::exchange(seen, now));
  };
  AliasRounds("kernel writes, kernel reads in stream order", put, [&](Ptr from, unsigned value, size_t size) {
    kernels.CountOther(from, value, size, stream);
    MUST(Wait(stream));
    return newly_bad();
  });
  AliasRounds("kernel writes, kernel of another stream reads after an event", put,
              [&](Ptr from, unsigned value, size_t size) {
                MUST(Record(event, stream));
                MUST(WaitEvent(other, event, 0));
                kernels.CountOther(from, value, size, other);
                MUST(Wait(other));
                return newly_bad();
              });
}

// Costs per handle in microseconds, one handle at a time, and of one set-access and one unmap over all of them.
void VmmCost() {
  StartWithVmm();
  size_t free = 0, total = 0;
  MUST(MemInfo(&free, &total));
  Line("%7s %5s | %8s %8s %8s %8s %8s | %8s %8s  (us a handle; the last two in one call for all)", "MiB", "n",
       "create", "map", "access", "unmap", "release", "access", "unmap");
  for (size_t size = 2 * kMiB; size <= 128 * kMiB; size *= 2) {
    const size_t count = std::min<size_t>({64, 2048 * kMiB / size, free / 2 / size});
    if (count == 0) break;
    const Ptr at = Reserve(count * size);
    const Access access;
    std::vector<Frame> frames(count);
    std::vector<double> create, map, set, unmap, release;
    for (size_t i = 0; i < count; ++i) {
      create.push_back(Micros([&] { frames[i] = Create(size); }));
      map.push_back(Micros([&] { MUST(Map(at + i * size, size, 0, frames[i], 0)); }));
      set.push_back(Micros([&] { MUST(SetAccess(at + i * size, size, &access, 1)); }));
    }
    for (size_t i = 0; i < count; ++i) unmap.push_back(Micros([&] { MUST(Unmap(at + i * size, size)); }));
    for (size_t i = 0; i < count; ++i) MUST(Map(at + i * size, size, 0, frames[i], 0));
    const double n = static_cast<double>(count);
    const double set_all = Micros([&] { MUST(SetAccess(at, count * size, &access, 1)); }) / n;
    const double unmap_all = Micros([&] { MUST(Unmap(at, count * size)); }) / n;
    for (const Frame frame : frames) release.push_back(Micros([&] { MUST(Release(frame)); }));
    const std::pair<const char*, double> figures[] = {
        {"create", Quantile(create, .5)}, {"map", Quantile(map, .5)},         {"access", Quantile(set, .5)},
        {"unmap", Quantile(unmap, .5)},   {"release", Quantile(release, .5)}, {"batched access", set_all},
        {"batched unmap", unmap_all}};
    for (const auto& [what, value] : figures)
      Figure(std::to_string(size / kMiB) + " MiB " + what, value, "us");
    Line("%7zu %5zu | %8.1f %8.1f %8.1f %8.1f %8.1f | %8.1f %8.1f", size / kMiB, count, figures[0].second,
         figures[1].second, figures[2].second, figures[3].second, figures[4].second, set_all, unmap_all);
  }
}

// Do the calls wait for a kernel that has nothing to do with the range?
void VmmBesideAKernel() {
  StartWithVmm();
  Kernels kernels;
  const Stream stream = NewStream();
  const Event done = NewEvent();
  constexpr size_t kSize = 32 * kMiB;
  const Ptr at = Reserve(kSize);
  Frame frame = 0;
  const Access access;
  const auto timed = [&](const char* what, auto call) {
    if (cu.Query(done) != kNotReady) {  // not yet, or a call has waited until the kernel ended
      kernels.Hold(stream);
      MUST(Record(done, stream));
    }
    const double micros = Micros(call);
    const bool running = cu.Query(done) == kNotReady;
    Line("%-10s beside a running kernel: %9.1f us%s", what, micros,
         running ? "" : "  <-- the kernel had ended: it WAITED");
    Figure(std::string(what) + " beside a kernel", micros, "us");
    Figure(std::string(what) + " waits for kernels", running ? 0 : 1, "");
  };
  timed("create", [&] { frame = Create(kSize); });
  timed("map", [&] { MUST(Map(at, kSize, 0, frame, 0)); });
  timed("set access", [&] { MUST(SetAccess(at, kSize, &access, 1)); });
  timed("unmap", [&] { MUST(Unmap(at, kSize)); });
  timed("release", [&] { MUST(Release(frame)); });
  kernels.Open();
  MUST(Synchronize());
}

// A thread that maps and unmaps 32 MiB frames until it is destroyed.
class Mapper {
 public:
  Mapper() : at_(Reserve(kSize)), frame_(Create(kSize)), thread_([this] { Run(); }) {}
  ~Mapper() {
    stop_ = true;
    thread_.join();
  }

 private:
  static constexpr size_t kSize = 32 * kMiB;
  void Run() {
    const Access access;
    cu.SetCurrent(context);
    while (!stop_) {
      if (cu.Map(at_, kSize, 0, frame_, 0) != 0 || cu.SetAccess(at_, kSize, &access, 1) != 0) return;
      if (cu.Unmap(at_, kSize) != 0) return;
    }
  }
  Ptr at_;
  Frame frame_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void LaunchesBesideAMapper() {
  StartWithVmm();
  Kernels kernels;
  const Stream stream = NewStream();
  const Ptr target = NewRange(2 * kMiB);
  const auto measure = [&](const char* what) {
    std::vector<double> launches;
    const double all = Micros([&] {
      for (int i = 0; i < 3000; ++i)
        launches.push_back(Micros([&] { kernels.Fill(target, 1, 1024, stream, 1); }));
      MUST(Wait(stream));
    });
    Line("launch %-22s median %6.2f us, p99 %7.2f us, 3000 kernels in %7.2f ms", what, Quantile(launches, .5),
         Quantile(launches, .99), all / 1e3);
    Figure(std::string("launch median ") + what, Quantile(launches, .5), "us");
    Figure(std::string("launch p99 ") + what, Quantile(launches, .99), "us");
    Figure(std::string("3000 kernels ") + what, all / 1e3, "ms");
  };
  measure("alone");
  Mapper mapper;
  measure("beside a mapper thread");
}

void CaptureRules() {
  StartWithVmm();
  const Stream stream = NewStream();
  const Event event = NewEvent();
  const Ptr at = Reserve(2 * kMiB);
  const Frame frame = Create(2 * kMiB);
  for (const int mode : {kRelaxed, kGlobal}) {
    const char* name = mode == kRelaxed ? "relaxed" : "global";
    MUST(Record(event, nullptr));
    MUST(Synchronize());
    if (const int error = cu.BeginCapture(stream, mode)) throw Skip("no capture: " + Name(error));
    int query = 0, map = 0, access_error = 0, unmap = 0;
    std::thread([&] {
      int wanted = kRelaxed;
      cu.SetCurrent(context);
      const Access access;
      cu.ExchangeMode(&wanted);
      query = cu.Query(event);
      map = cu.Map(at, 2 * kMiB, 0, frame, 0);
      access_error = cu.SetAccess(at, 2 * kMiB, &access, 1);
      unmap = cu.Unmap(at, 2 * kMiB);
    }).join();
    void* graph = nullptr;
    const int end = cu.EndCapture(stream, &graph);
    Line(
        "%s capture, relaxed second thread: event query %s, map %s, set access %s, unmap %s; end of capture "
        "%s",
        name, Name(query).c_str(), Name(map).c_str(), Name(access_error).c_str(), Name(unmap).c_str(),
        Name(end).c_str());
    Figure(std::string(name) + " event query", query, "code");
    Figure(std::string(name) + " map", map, "code");
    Figure(std::string(name) + " end", end, "code");
  }
}

}  // namespace

#endif
