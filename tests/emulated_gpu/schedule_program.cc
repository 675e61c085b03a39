#include "tests/emulated_gpu/schedule_program.h"

#include <bitset>
#include <map>
#include <random>

namespace weir::emulated {
namespace {

constexpr size_t kMostLines = 512;
using Works = std::bitset<kMostLines>;  // by line

// What comes before what, line by line.
class History {
 public:
  // Everything that a work of `stream` enqueued now would come after.
  Works Before(int stream) const {
    Works before = last_[stream] | complete_;
    if (stream == 0) before |= last_[1];
    if (stream == 1) before |= last_[0];
    return before;
  }

  // The works that conflict with `line` if it were enqueued now.
  std::vector<size_t> Conflicts(const Line& line) const {
    const Works before = IsHostCall(line) ? complete_ : Before(line.stream);
    std::vector<size_t> found;
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (!before[i] && Conflict(lines_[i], line)) found.push_back(i);
    }
    return found;
  }

  int StreamOf(size_t line) const { return lines_[line].stream; }

  void Add(const Line& line) {
    const size_t number = lines_.size();
    lines_.push_back(line);
    switch (line.kind) {
      case Kind::kKernel:
      case Kind::kCopy:
      case Kind::kMemset:
      case Kind::kRecord:
      case Kind::kWait: {
        Works before = Before(line.stream);
        if (line.kind == Kind::kWait) before |= events_[line.event];
        last_[line.stream] = before.set(number);
        if (line.kind == Kind::kRecord) events_[line.event] = last_[line.stream];
        return;
      }
      case Kind::kSyncEvent:
      case Kind::kPoll:
        complete_ |= events_[line.event];
        return;
      case Kind::kSyncStream:
        complete_ |= last_[line.stream];
        if (line.stream == 0) complete_ |= last_[1];
        return;
      case Kind::kSyncDevice:
      case Kind::kReplace:  // a free waits for the device
        for (const Works& last : last_) complete_ |= last;
        return;
      case Kind::kMove:
        return;
    }
  }

 private:
  static bool IsHostCall(const Line& line) { return line.kind == Kind::kMove; }

  static bool Conflict(const Line& one, const Line& other) {
    for (const Part& a : one.parts) {
      if (other.kind == Kind::kMove && a.buffer == other.buffer && a.mapping == 1) return true;
      for (const Part& b : other.parts) {
        if (a.buffer == b.buffer && (a.write || b.write) && (a.units() & b.units()) != 0) return true;
      }
    }
    return false;
  }

  std::vector<Line> lines_;
  Works last_[kStreams], complete_;
  std::map<int, Works> events_;
};

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  Program Make() {
    const int works = 8 + Draw(25);
    for (int i = 0; i < works; ++i) {
      AddOrdered(RandomLine());
      if (Draw(6) == 0) AddOrder(Draw(kStreams), Draw(kStreams));  // one that nothing needs, perhaps
    }
    return program_;
  }

 private:
  int Draw(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }

  Part RandomPart(int buffer, bool write) {
    Part part{buffer, 0, 0, 0, Draw(3) == 0, write};
    const int room = part.columns ? kColumns : kUnits;
    part.count = 1 + Draw(part.columns ? 4 : 24);
    part.first = Draw(room - part.count + 1);
    if (IsFrame(buffer)) part.mapping = Draw(2);
    return part;
  }

  static bool IsFrame(int buffer) { return buffer >= kAllocations && buffer < kPinned; }

  Line RandomLine() {
    Line line;
    line.number = ++works_;
    line.stream = Draw(kStreams);
    const int what = Draw(20);
    if (what < 9) {
      line.kind = Kind::kKernel;
      const int reads = Draw(3);
      for (int i = 0; i < reads; ++i) line.parts.push_back(RandomPart(Draw(kPinned), false));
      line.parts.push_back(RandomPart(Draw(kPinned), true));
    } else if (what < 15) {
      line.kind = Kind::kCopy;
      Part from = RandomPart(Draw(kBuffers), false), to = RandomPart(Draw(kBuffers), true);
      if (from.buffer == to.buffer || (from.buffer >= kPinned && to.buffer >= kPinned))
        to = RandomPart((from.buffer + 2) % kPinned, true);
      if (from.buffer == to.buffer) to.buffer = (to.buffer + 1) % kAllocations, to.mapping = 0;
      from.columns = to.columns = false;
      to.count = from.count;
      to.first = Draw(kUnits - to.count + 1);
      line.parts = {from, to};
    } else if (what < 18) {
      line.kind = Kind::kMemset;
      line.parts.push_back(RandomPart(Draw(kPinned), true));
      line.parts[0].columns = false;
    } else if (what == 18) {
      line.kind = Kind::kReplace;
      line.buffer = Draw(kAllocations);
    } else {
      line.kind = Kind::kMove;
      line.buffer = kAllocations + Draw(kPinned - kAllocations);
    }
    return line;
  }

  void Add(Line line) {
    history_.Add(line);
    program_.push_back(std::move(line));
  }

  int Record(int stream) {
    Line record;
    record.kind = Kind::kRecord;
    record.stream = stream;
    record.event = Draw(3) == 0 && events_ > 0 ? Draw(events_) : events_++;  // recorded again, now and then
    Add(record);
    return record.event;
  }

  // Work of `stream` from now on comes after what `before` has now.
  void AddOrder(int stream, int before) {
    Line line;
    line.stream = stream;
    const int how = Draw(10);
    line.kind = how < 7    ? Kind::kWait
                : how == 7 ? Kind::kSyncEvent
                : how == 8 ? Kind::kPoll
                           : Kind::kSyncStream;
    if (line.kind == Kind::kSyncStream) {
      line.stream = before;
    } else {
      line.event = Record(before);
    }
    Add(line);
  }

  void AddOrdered(const Line& line) {
    for (auto conflicts = history_.Conflicts(line); !conflicts.empty();
         conflicts = history_.Conflicts(line)) {
      const int before =
          history_.StreamOf(conflicts[static_cast<size_t>(Draw(static_cast<int>(conflicts.size())))]);
      if (line.kind != Kind::kMove) {
        AddOrder(line.stream, before);
        continue;
      }
      Line sync;
      sync.kind = Draw(2) == 0 ? Kind::kSyncStream : Kind::kPoll;
      sync.stream = before;
      if (sync.kind == Kind::kPoll) sync.event = Record(before);
      Add(sync);
    }
    Add(line);
  }

  std::mt19937_64 random_;
  Program program_;
  History history_;
  uint64_t works_ = 0;
  int events_ = 0;
};

std::string Text(const Part& part) {
  std::string text = (part.write ? " writes b" : " reads b") + std::to_string(part.buffer);
  if (part.mapping != 0) text += "'";
  return text + (part.columns ? " columns " : " units ") + std::to_string(part.first) + "+" +
         std::to_string(part.count);
}

}  // namespace

Units Part::units() const {
  const auto run = [](int first, int count) {
    return (count == 64 ? ~Units{0} : (Units{1} << count) - 1) << first;
  };
  if (!columns) return run(first, count);
  Units all = 0;
  for (int row = 0; row < kUnits / kColumns; ++row) all |= run(row * kColumns + first, count);
  return all;
}

Program RandomProgram(uint64_t seed) { return Maker(seed).Make(); }

bool IsWait(const Line& line) {
  return line.kind == Kind::kWait || line.kind == Kind::kSyncEvent || line.kind == Kind::kSyncStream ||
         line.kind == Kind::kSyncDevice || line.kind == Kind::kPoll;
}

bool IsOrdered(const Program& program) {
  History history;
  for (const Line& line : program) {
    if (!history.Conflicts(line).empty()) return false;
    history.Add(line);
  }
  return true;
}

std::string Text(const Program& program) {
  static const char* const names[] = {"kernel",     "copy",       "memset",      "record",
                                      "wait",       "sync event", "sync stream", "sync device",
                                      "poll event", "replace",    "move"};
  std::string text;
  for (const Line& line : program) {
    text += std::string("  ") + names[static_cast<int>(line.kind)];
    const bool on_stream = line.kind <= Kind::kWait || line.kind == Kind::kSyncStream;
    if (on_stream) text += " s" + std::to_string(line.stream);
    const bool has_event = line.kind == Kind::kRecord || line.kind == Kind::kWait ||
                           line.kind == Kind::kSyncEvent || line.kind == Kind::kPoll;
    if (has_event) text += " e" + std::to_string(line.event);
    if (line.kind >= Kind::kReplace) text += " b" + std::to_string(line.buffer);
    for (const Part& part : line.parts) text += Text(part);
    text += "\n";
  }
  return text;
}

std::vector<std::vector<uint8_t>> Reference(const Program& program) {
  std::vector<std::vector<uint8_t>> buffers(kBuffers, std::vector<uint8_t>(kBufferBytes));
  for (const Line& line : program) {
    if (line.kind <= Kind::kMemset) {
      RunWork(line, [&](const Part& part) { return buffers[static_cast<size_t>(part.buffer)].data(); });
    } else if (line.kind == Kind::kReplace) {
      std::fill(buffers[static_cast<size_t>(line.buffer)].begin(),
                buffers[static_cast<size_t>(line.buffer)].end(), 0);
    }
  }
  return buffers;
}

}  // namespace weir::emulated
