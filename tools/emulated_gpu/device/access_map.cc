#include "tools/emulated_gpu/device/access_map.h"

#include <algorithm>

namespace weir::emulated {
namespace {

constexpr uint64_t kMostRows = 4096;  // compared one by one
constexpr size_t kMostAccesses = 64;  // kept per segment; the oldest go first

// A row of `pattern` has a byte in [begin, end).
bool Touches(const Pattern& pattern, Place begin, Place end) {
  if (pattern.pitch == 0) return begin < end;
  const uint64_t phase = pattern.phase % pattern.pitch;
  const uint64_t into = (begin % pattern.pitch + pattern.pitch - phase) % pattern.pitch;  // since a row began
  return into < pattern.width || pattern.pitch - into < end - begin;
}

bool Complete(const PlaceAccess& access, const Ticks& completed) {
  return access.tick <= At(completed, access.index);
}

bool Ordered(const PlaceAccess& before, const Past& past) { return before.tick <= past.Newest(before.index); }

// What is known of `older` is implied by `newer` from now on: it covers the same bytes and comes after it.
bool Replaces(const PlaceAccess& newer, const PlaceAccess& older) {
  if (newer.pattern.pitch != 0 && !(newer.pattern == older.pattern)) return false;
  return newer.write || (!older.write && newer.index == older.index);
}

}  // namespace

bool Meet(const Pattern& one, const Pattern& other, Place begin, Place end) {
  if (begin >= end) return false;
  if (one.pitch == 0) return Touches(other, begin, end);
  if (other.pitch == 0) return Touches(one, begin, end);
  const uint64_t before_begin = (begin % one.pitch + one.pitch - one.phase % one.pitch) % one.pitch;
  const uint64_t rows = (end - begin + before_begin) / one.pitch + 1;
  // With one pitch all whole rows are alike, so the first and the last three tell.
  const uint64_t skip_after = one.pitch == other.pitch && rows > 6 ? 3 : rows;
  for (uint64_t row = 0; row < std::min(rows, kMostRows); ++row) {
    const uint64_t number = row < skip_after ? row : rows - 6 + row;
    if (number >= rows) break;
    const Place at = begin + number * one.pitch;  // of the row, plus before_begin
    const Place first = at < begin + before_begin ? begin : at - before_begin;
    const Place last =
        std::min(end, at + one.width < begin + before_begin ? begin : at + one.width - before_begin);
    if (first < last && Touches(other, first, last)) return true;
  }
  return false;
}

bool AccessMap::Add(Place begin, Place end, const PlaceAccess& access, const Past& past,
                    const Ticks& completed, PlaceAccess* conflict) {
  bool found = false, newest = true;
  if (segments_.size() > drop_at_) DropComplete(completed);
  auto segment = SplitAt(begin);
  SplitAt(end);
  for (Place at = begin; at < end;) {
    if (segment == segments_.end() || segment->first > at) {  // nobody was there
      const Place gap = segment == segments_.end() ? end : std::min(end, segment->first);
      segment = std::next(segments_.emplace_hint(segment, at, Segment{gap, {access}}));
      at = gap;
      continue;
    }
    auto& accesses = segment->second.accesses;
    for (const PlaceAccess& before : accesses) {
      if (before.work > access.work) {
        newest = false;
        continue;
      }
      if (found || (!before.write && !access.write) || before.index == access.index) continue;
      if (Complete(before, completed) || Ordered(before, past)) continue;
      if (!Meet(before.pattern, access.pattern, segment->first, segment->second.end)) continue;
      *conflict = before;
      found = true;
    }
    accesses.erase(std::remove_if(accesses.begin(), accesses.end(),
                                  [&](const PlaceAccess& before) {
                                    return Complete(before, completed) ||
                                           (before.work <= access.work && Replaces(access, before));
                                  }),
                   accesses.end());
    if (accesses.size() == kMostAccesses) accesses.erase(accesses.begin());
    accesses.push_back(access);
    at = segment->second.end;
    ++segment;
  }
  // One segment again where one access replaced all others; cuts would only grow more otherwise.
  if (newest && access.write && access.pattern.pitch == 0) {
    const auto first = std::next(segments_.find(begin));
    if (first != segments_.end() && first->first < end) {
      segments_.erase(first, segments_.lower_bound(end));
      segments_.find(begin)->second.end = end;
    }
  }
  return found;
}

bool AccessMap::HasWriter(Place begin, Place end, const Ticks& completed) const {
  auto segment = segments_.upper_bound(begin);
  if (segment != segments_.begin() && std::prev(segment)->second.end > begin) --segment;
  for (; segment != segments_.end() && segment->first < end; ++segment) {
    for (const PlaceAccess& access : segment->second.accesses) {
      if (access.write && !Complete(access, completed)) return true;
    }
  }
  return false;
}

void AccessMap::Forget(Place begin, Place end) {
  const auto first = SplitAt(begin);
  segments_.erase(first, SplitAt(end));
}

// The first segment that begins at `place` or after it; one that `place` lies in is cut in two.
AccessMap::Segments::iterator AccessMap::SplitAt(Place place) {
  auto next = segments_.lower_bound(place);
  if (next == segments_.begin() || (next != segments_.end() && next->first == place)) return next;
  Segment& before = std::prev(next)->second;
  if (before.end <= place) return next;
  const auto cut = segments_.emplace_hint(next, place, Segment{before.end, before.accesses});
  before.end = place;
  return cut;
}

void AccessMap::DropComplete(const Ticks& completed) {
  for (auto segment = segments_.begin(); segment != segments_.end();) {
    const auto& accesses = segment->second.accesses;
    const bool complete = std::all_of(accesses.begin(), accesses.end(),
                                      [&](const PlaceAccess& access) { return Complete(access, completed); });
    segment = complete ? segments_.erase(segment) : std::next(segment);
  }
  drop_at_ = std::max<size_t>(1024, 2 * segments_.size());
}

}  // namespace weir::emulated
