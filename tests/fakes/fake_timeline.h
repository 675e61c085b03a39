// The streams of the fake device. Work is queued and, by default, runs as late as the rules allow: when the
// host synchronises with it, or when work that has to wait for it runs. So whoever forgets to wait reads old
// bytes, every time. Besides, every access is checked against the vector clocks (fake_clock.h): a missing
// order edge is a failure even where the bytes came out right. Not synchronised: guarded by the fake driver's
// mutex. Misuse is returned as a sentence, empty when there is none.
#ifndef WEIR_TESTS_FAKES_FAKE_TIMELINE_H_
#define WEIR_TESTS_FAKES_FAKE_TIMELINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "allocator/base/units.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_memory.h"

namespace weir::fakes {

// One recording of an event.
struct Recording {
  size_t stream = 0;
  uint64_t task = 0;  // everything of `stream` up to this one
  VectorClock clock;
  bool done = false;
};

struct Access {
  std::vector<Piece> pieces;
  bool write = false;
};

class FakeTimeline {
 public:
  // Queues `run`. Reports the first conflicting access that nothing orders before it.
  std::string Enqueue(Stream stream, const std::vector<Access>& accesses, std::function<void()> run);
  std::shared_ptr<Recording> Record(Stream stream);
  void Wait(Stream stream, std::shared_ptr<Recording> recording);

  // Whether it has run; if so the host knows now.
  bool Query(const Recording& recording);
  // The host waits for it.
  void Finish(const Recording& recording);
  void FinishAll();
  // Runs up to `tasks` tasks of streams chosen by `random`, as a device would while the host looks away.
  void RunSome(int tasks, std::mt19937_64& random);
  // Accesses to `region` that the host has not seen the end of.
  bool InFlight(const Region& region) const;
  size_t queued() const;

 private:
  struct Task {
    std::function<void()> run;  // null for a wait or a record
    std::shared_ptr<Recording> records, waits_for;
  };
  struct Line {
    Stream stream;
    std::deque<Task> tasks;
    uint64_t queued = 0, ran = 0;
    VectorClock clock;
  };
  size_t LineOf(Stream stream);
  // The next task of the line begins; returns its moment.
  Moment Begin(size_t line);
  std::string Check(const Access& access, Moment now, const VectorClock& clock) const;
  void RunOne(Line& line);
  void RunUntil(size_t line, uint64_t task);

  std::vector<std::unique_ptr<Line>> lines_;
  VectorClock host_;  // what the host, any thread of it, has seen the end of
};

}  // namespace weir::fakes

#endif  // WEIR_TESTS_FAKES_FAKE_TIMELINE_H_
