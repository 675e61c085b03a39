// Part of probe.cc: copies, pinned and host-backed memory, sharing, and the ends of a context and a process.
#ifndef WEIR_GPU_CHECK_PROBE_COPIES_H_
#define WEIR_GPU_CHECK_PROBE_COPIES_H_

#include <cstdlib>

#include "probe_vmm.h"

namespace {

// Copies both ways at once until one way has made all of its, and what each made by then: GB/s of `in` and of `out`.
void BothWays(Ptr here, Ptr there, unsigned* from, unsigned* to, Stream in, Stream out) {
  constexpr size_t kPiece = 8 * kMiB, kPieces = 24;
  std::vector<Event> ends[2];
  const auto start = Clock::now();
  for (size_t i = 0; i < kPieces; ++i) {
    MUST(ToDevice(here, from, kPiece, in));
    MUST(ToHost(to, there, kPiece, out));
    for (const int way : {0, 1}) {
      ends[way].push_back(NewEvent());
      MUST(Record(ends[way].back(), way == 0 ? in : out));
    }
  }
  size_t done[2] = {0, 0};
  while (done[0] < kPieces && done[1] < kPieces) {
    for (const int way : {0, 1}) {
      while (done[way] < kPieces && cu.Query(ends[way][done[way]]) == 0) ++done[way];
    }
  }
  const double micros = Seconds(start) * 1e6;
  MUST(Synchronize());
  const std::pair<const char*, double> rates[] = {
      {"to device beside copies to host", static_cast<double>(done[0] * kPiece) / micros / 1e3},
      {"to host beside copies to device", static_cast<double>(done[1] * kPiece) / micros / 1e3}};
  for (const auto& [what, rate] : rates) {
    Line("%-38s %8.1f GB/s", what, rate);
    Figure(what, rate, "GB/s");
  }
}

void Copies() {
  StartWithVmm();
  constexpr size_t kSize = 128 * kMiB;
  const Stream in = NewStream(), out = NewStream(), in2 = NewStream();
  unsigned *from = Pinned(kSize), *to = Pinned(kSize);
  std::memset(from, 1, kSize);
  std::memset(to, 2, kSize);
  const Ptr here = NewRange(kSize), there = NewRange(kSize);
  std::vector<char> pageable(kSize, 3);
  const auto rate = [&](const char* what, double bytes, auto start) {
    start();  // the first time warms up
    MUST(Synchronize());
    std::vector<double> rates;
    for (int i = 0; i < 3; ++i) {
      rates.push_back(bytes / 1e3 / Micros([&] {
                        start();
                        MUST(Synchronize());
                      }));
    }
    Line("%-38s %8.1f GB/s", what, Quantile(rates, .5));
    Figure(what, Quantile(rates, .5), "GB/s");
  };
  const double size = kSize;
  rate("to device, pinned", size, [&] { MUST(ToDevice(here, from, kSize, in)); });
  rate("to host, pinned", size, [&] { MUST(ToHost(to, there, kSize, out)); });
  rate("both at once, pinned, sum", 2 * size, [&] {
    MUST(ToDevice(here, from, kSize, in));
    MUST(ToHost(to, there, kSize, out));
  });
  BothWays(here, there, from, to, in, out);
  rate("to device by two streams, sum", 2 * size, [&] {
    MUST(ToDevice(here, from, kSize, in));
    MUST(ToDevice(there, to, kSize, in2));
  });
  rate("to device, pageable", size, [&] { MUST(ToDevice(here, pageable.data(), kSize, in)); });
  rate("on device (read and write)", 2 * size, [&] { MUST(OnDevice(here, there, kSize, in)); });
  rate("to device, 2 MiB pieces", size, [&] {
    for (size_t at = 0; at < kSize; at += 2 * kMiB) MUST(ToDevice(here + at, from + at / 4, 2 * kMiB, in));
  });
  Mapper mapper;
  rate("to device beside a mapper thread", size, [&] { MUST(ToDevice(here, from, kSize, in)); });
}

void CallCost() {
  StartWithVmm();
  const Stream stream = NewStream(), other = NewStream();
  const Event event = NewEvent();
  unsigned* host = Pinned(2 * kMiB);
  const Ptr range = NewRange(2 * kMiB);
  size_t free = 0, total = 0;
  const auto cost = [&](const char* what, auto call) {
    std::vector<double> times;
    for (int i = 0; i < 500; ++i) times.push_back(Micros(call));
    MUST(Synchronize());
    Line("%-28s median %7.2f us, p99 %8.2f us", what, Quantile(times, .5), Quantile(times, .99));
    Figure(what, Quantile(times, .5), "us");
  };
  cost("event record", [&] { MUST(Record(event, stream)); });
  cost("event query", [&] { cu.Query(event); });
  cost("stream wait", [&] { MUST(WaitEvent(other, event, 0)); });
  cost("submit a 64 KiB copy, pinned", [&] { MUST(ToDevice(range, host, 64 << 10, stream)); });
  cost("submit a memset", [&] { MUST(Memset(range, 0, 1024, stream)); });
  cost("memory info", [&] { MUST(MemInfo(&free, &total)); });
}

void PinnedMemory() {
  Start();
  for (const size_t size : {64 * kMiB, 256 * kMiB}) {
    unsigned* address = nullptr;
    const double allocate = Micros([&] { address = Pinned(size); });
    const double touch = Micros([&] { std::memset(address, 1, size); });
    const double release = Micros([&] { MUST(HostFree(address)); });
    const double to_gib = 1024.0 * kMiB / static_cast<double>(size) / 1e3;
    Line("pinned, %3zu MiB: allocate %7.1f ms/GiB, first touch %7.1f ms/GiB, free %7.1f ms/GiB", size / kMiB,
         allocate * to_gib, touch * to_gib, release * to_gib);
    Figure(std::to_string(size / kMiB) + " MiB pinned allocate", allocate * to_gib, "ms/GiB");
    Figure(std::to_string(size / kMiB) + " MiB pinned free", release * to_gib, "ms/GiB");
  }
}

void HostBacked() {
  StartWithVmm();
  Properties properties;
  properties.location = {kHostNuma, std::max(0, Attribute(134))};
  constexpr size_t kSize = 64 * kMiB;
  Frame frame = 0;
  if (const int error = cu.Create(&frame, kSize, &properties, 0)) {
    throw Skip("no host-backed frames (attribute 141 is " + std::to_string(Attribute(141)) +
               "): " + Name(error));
  }
  const Ptr host = MapAt(Reserve(kSize), kSize, frame), device = NewRange(kSize);
  const Stream stream = NewStream();
  unsigned* seen = Pinned(kSize);
  MUST(Memset(host, 0x5eed, kSize / 4, stream));
  MUST(OnDevice(device, host, kSize, stream));
  MUST(ToHost(seen, device, kSize, stream));
  MUST(Wait(stream));
  const auto bad =
      static_cast<double>(kSize / 4 - static_cast<size_t>(std::count(seen, seen + kSize / 4, 0x5eedu)));
  const double micros = Micros([&] {
    MUST(OnDevice(device, host, kSize, stream));
    MUST(Wait(stream));
  });
  Line("host-backed frame on NUMA node %d: mapped, %.0f words differ, read at %.1f GB/s",
       properties.location.id, bad, kSize / micros / 1e3);
  Figure("host-backed differing words", bad, "");
  Figure("host-backed read", kSize / micros / 1e3, "GB/s");
}

void Exportable() {
  StartWithVmm();
  Properties properties;
  properties.handle_types = kFileDescriptor;
  constexpr size_t kSize = 32 * kMiB;
  Frame frame = 0, again = 0;
  const double plain = Micros([&] { Create(kSize); });
  const double exportable = Micros([&] { frame = Create(kSize, properties); });
  int descriptor = -1;
  if (const int error = cu.Export(&descriptor, frame, kFileDescriptor, 0))
    throw Skip("no export: " + Name(error));
  MUST(Import(&again, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)), kFileDescriptor));
  const Ptr first = MapAt(Reserve(kSize), kSize, frame), second = MapAt(Reserve(kSize), kSize, again);
  unsigned* seen = Pinned(4);
  MUST(Memset(first, 0xfeed, kSize / 4, nullptr));
  MUST(ToHost(seen, second + kSize - 4, 4, nullptr));
  MUST(Synchronize());
  Line("exported as a file descriptor and imported: %s; create %.0f us, %.0f us when exportable",
       *seen == 0xfeed ? "the same memory" : "OTHER BYTES", plain, exportable);
  Figure("import shows the bytes", *seen == 0xfeed ? 1 : 0, "");
}

void AfterReset() {
  StartWithVmm();
  size_t before = 0, held = 0, after = 0, total = 0;
  MUST(MemInfo(&before, &total));
  const Ptr address = NewRange(256 * kMiB);
  MUST(MemInfo(&held, &total));
  const int reset = cu.Reset(0);
  if (reset != 0) throw Skip("no reset: " + Name(reset));
  Start();
  MUST(MemInfo(&after, &total));
  Line("reset of the context with 256 MiB mapped: %zu MiB came back, unmap afterwards gives %s",
       after > held ? (after - held) / kMiB : 0, Name(cu.Unmap(address, 256 * kMiB)).c_str());
}

// What a static destructor of a job meets: handlers run in the reverse order of their registration.
Ptr left_mapped = 0;
void AtExit(const char* when) {
  Line("exit handler made %s the driver was loaded: unmap %s, synchronize %s", when,
       Name(cu.Unmap(left_mapped, 2 * kMiB)).c_str(), Name(cu.Synchronize()).c_str());
}
void BeforeTheDriver() {
  std::atexit([] {
    if (left_mapped != 0) AtExit("before");
  });
}
void ExitOrder() {
  std::atexit([] { AtExit("after"); });
  StartWithVmm();
  left_mapped = NewRange(2 * kMiB);
  MUST(Memset(left_mapped, 1, 1024, nullptr));
}

}  // namespace

#endif
