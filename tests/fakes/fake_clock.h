// Who is ordered after whom on a fake device: a vector clock per stream, event and for the host (shared rule
// R18). An access that no wait orders after an earlier conflicting one is a race, whatever the streams really
// did. Not synchronised: guarded by the fake driver's mutex.
#ifndef WEIR_TESTS_FAKES_FAKE_CLOCK_H_
#define WEIR_TESTS_FAKES_FAKE_CLOCK_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::fakes {

// For each stream (by index), up to which of its tasks something is known to be ordered after.
class VectorClock {
 public:
  uint64_t operator[](size_t stream) const { return stream < last_.size() ? last_[stream] : 0; }
  void Set(size_t stream, uint64_t task) {
    if (last_.size() <= stream) last_.resize(stream + 1);
    last_[stream] = task;
  }
  void Merge(const VectorClock& other) {
    if (last_.size() < other.last_.size()) last_.resize(other.last_.size());
    for (size_t i = 0; i < other.last_.size(); ++i) last_[i] = std::max(last_[i], other.last_[i]);
  }

 private:
  std::vector<uint64_t> last_;
};

// One task of one stream. Task zero is none.
struct Moment {
  uint32_t stream = 0;
  uint32_t task = 0;
  bool Before(const VectorClock& clock) const { return task == 0 || clock[stream] >= task; }
};

// The last accesses of one granule.
class AccessShadow {
 public:
  enum class Race { kNone, kReadAfterWrite, kWriteAfterWrite, kWriteAfterRead };

  // `clock` is the clock of the task that accesses, `now` its own moment. Returns what it is not ordered
  // after, in
  // `*other` the moment.
  Race Read(Moment now, const VectorClock& clock, Moment* other) {
    Remember(now, clock);
    if (write_.Before(clock)) return Race::kNone;
    *other = write_;
    return Race::kReadAfterWrite;
  }
  Race Write(Moment now, const VectorClock& clock, Moment* other) {
    Race race = Race::kNone;
    if (!write_.Before(clock)) {
      *other = write_;
      race = Race::kWriteAfterWrite;
    }
    for (const Moment& read : reads_) {
      if (race == Race::kNone && !read.Before(clock)) {
        *other = read;
        race = Race::kWriteAfterRead;
      }
    }
    reads_ = {};
    write_ = now;
    return race;
  }

 private:
  // Reads that the new one is ordered after need not be kept. More than three unordered readers: the oldest
  // is lost.
  void Remember(Moment now, const VectorClock& clock) {
    for (Moment& read : reads_) {
      if (read.Before(clock)) {
        read = now;
        return;
      }
    }
    reads_[next_++ % reads_.size()] = now;
  }

  Moment write_;
  std::array<Moment, 3> reads_{};
  uint32_t next_ = 0;
};

}  // namespace weir::fakes

#endif  // WEIR_TESTS_FAKES_FAKE_CLOCK_H_
