#include "tests/fakes/fake_timeline.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace weir::fakes {
namespace {

const char* RaceName(AccessShadow::Race race) {
  switch (race) {
    case AccessShadow::Race::kReadAfterWrite:
      return "a read is not ordered after a write";
    case AccessShadow::Race::kWriteAfterWrite:
      return "a write is not ordered after a write";
    case AccessShadow::Race::kWriteAfterRead:
      return "a write is not ordered after a read";
    case AccessShadow::Race::kNone:
      break;
  }
  return "no race";
}

}  // namespace

size_t FakeTimeline::LineOf(Stream stream) {
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i]->stream == stream) return i;
  }
  lines_.push_back(std::make_unique<Line>());
  lines_.back()->stream = stream;
  return lines_.size() - 1;
}

Moment FakeTimeline::Begin(size_t index) {
  Line& line = *lines_[index];
  line.clock.Merge(host_);  // the host queues it after everything that it has seen
  line.clock.Set(index, ++line.queued);
  return Moment{static_cast<uint32_t>(index), static_cast<uint32_t>(line.queued)};
}

std::string FakeTimeline::Check(const Access& access, Moment now, const VectorClock& clock) const {
  for (const Piece& piece : access.pieces) {
    piece.region->uses.Set(now.stream, now.task);
    for (uint64_t i = piece.first; i < piece.first + piece.count; ++i) {
      Moment other;
      AccessShadow& shadow = piece.region->shadow[i];
      AccessShadow::Race race =
          access.write ? shadow.Write(now, clock, &other) : shadow.Read(now, clock, &other);
      if (race == AccessShadow::Race::kNone) continue;
      return absl::StrCat(RaceName(race), ": task ", now.task, " of stream ",
                          lines_[now.stream]->stream.handle(), " against task ", other.task, " of stream ",
                          lines_[other.stream]->stream.handle());
    }
  }
  return "";
}

std::string FakeTimeline::Enqueue(Stream stream, const std::vector<Access>& accesses,
                                  std::function<void()> run) {
  size_t index = LineOf(stream);
  Moment now = Begin(index);
  Line& line = *lines_[index];
  std::string misuse;
  for (const Access& access : accesses) {
    std::string race = Check(access, now, line.clock);
    if (misuse.empty()) misuse = std::move(race);
  }
  line.tasks.push_back(Task{std::move(run), nullptr, nullptr});
  return misuse;
}

std::shared_ptr<Recording> FakeTimeline::Record(Stream stream) {
  size_t index = LineOf(stream);
  Begin(index);
  Line& line = *lines_[index];
  auto recording = std::make_shared<Recording>(Recording{index, line.queued, line.clock, false});
  line.tasks.push_back(Task{nullptr, recording, nullptr});
  return recording;
}

void FakeTimeline::Wait(Stream stream, std::shared_ptr<Recording> recording) {
  size_t index = LineOf(stream);
  Begin(index);
  Line& line = *lines_[index];
  line.clock.Merge(recording->clock);
  line.tasks.push_back(Task{nullptr, nullptr, std::move(recording)});
}

void FakeTimeline::RunOne(Line& line) {
  Task task = std::move(line.tasks.front());
  line.tasks.pop_front();
  ++line.ran;
  if (task.waits_for != nullptr) RunUntil(task.waits_for->stream, task.waits_for->task);
  if (task.run) task.run();
  if (task.records != nullptr) task.records->done = true;
}

void FakeTimeline::RunUntil(size_t index, uint64_t task) {
  Line& line = *lines_[index];
  while (line.ran < task) RunOne(line);
}

bool FakeTimeline::Query(const Recording& recording) {
  if (recording.done) host_.Merge(recording.clock);
  return recording.done;
}

void FakeTimeline::Finish(const Recording& recording) {
  RunUntil(recording.stream, recording.task);
  host_.Merge(recording.clock);
}

void FakeTimeline::FinishAll() {
  for (size_t i = 0; i < lines_.size(); ++i) {
    RunUntil(i, lines_[i]->queued);
    host_.Merge(lines_[i]->clock);
  }
}

void FakeTimeline::RunSome(int tasks, std::mt19937_64& random) {
  if (lines_.empty()) return;
  for (int i = 0; i < tasks; ++i) {
    Line& line = *lines_[random() % lines_.size()];
    if (line.tasks.empty()) continue;
    const std::shared_ptr<Recording>& waits_for = line.tasks.front().waits_for;
    if (waits_for != nullptr && !waits_for->done) continue;
    RunOne(line);
  }
}

bool FakeTimeline::InFlight(const Region& region) const {
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (region.uses[i] > host_[i]) return true;
  }
  return false;
}

size_t FakeTimeline::queued() const {
  size_t sum = 0;
  for (const auto& line : lines_) sum += line->tasks.size();
  return sum;
}

}  // namespace weir::fakes
