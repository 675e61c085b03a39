#include "trace/recorder.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/lock_ranks.h"
#include "allocator/base/log.h"
#include "trace/frame_codec.h"
#include "trace/trace_file.h"

namespace weir::trace {
namespace {

// What one frame is made of.
struct Chunk {
  uint32_t count = 0;
  std::string strings;
  Record records[kMostRecords];
};

constexpr size_t kMostChunks = 256;  // 64 MiB of records wait for the disk at most

// A thread's number in the trace that is the `session`-th of the process.
struct ThreadNumber {
  uint64_t session = 0;
  uint16_t number = 0;
};
thread_local ThreadNumber this_thread;

struct StreamNumber {
  uint64_t session = 0;
  Stream stream;
  uint32_t number = 0;
};
thread_local StreamNumber last_stream;

int64_t Nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t MachineNow() { return Nanoseconds(CLOCK_MONOTONIC); }

std::atomic<int64_t (*)()> now_of_trace{&MachineNow};

// Never destroyed: tensors are freed while the process exits.
class Recorder {
 public:
  static Recorder& Get() {
    static auto* recorder = new Recorder;
    return *recorder;
  }

  absl::Status Start(const std::string& path, absl::string_view rank, Clock clock);
  void Stop();
  int threads_started() const { return threads_started_.load(std::memory_order_relaxed); }
  uint32_t NumberOf(absl::string_view text);
  uint32_t NumberOf(Stream stream);
  // Time and thread of `first` are filled in; the Tensors follow it.
  void Append(Record first, std::span<const Tensor> tensors = {}, uint8_t flags = 0);
  // In a forked child: the file belongs to the parent.
  void Abandon() {
    internal::on.store(false, std::memory_order_relaxed);
    file_.Close();
  }

 private:
  Recorder() = default;
  std::string Header(absl::string_view rank, ClockKind clock) const;
  void AppendLocked(const Record& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteThreadLocked(uint64_t now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool NextChunkLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<Chunk> NewChunkLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<Chunk> TakeChunk(bool* last) ABSL_LOCKS_EXCLUDED(mutex_);
  void Write() ABSL_LOCKS_EXCLUDED(mutex_);
  bool StartWriter();
  static void EndEarly(const absl::Status& why);

  // Of the thread that starts and stops; while the writer runs, of the writer.
  TraceFile file_;
  std::string header_;
  pthread_t writer_{};
  bool has_writer_ = false;
  long process_ = 0;
  std::atomic<int> threads_started_{0};
  std::atomic<uint64_t> session_{0};  // traces so far: what a thread remembers of another one is void

  RankedMutex mutex_{LockRank::kTrace};
  absl::CondVar work_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint16_t threads_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t chunks_ ABSL_GUARDED_BY(mutex_) = 0;  // that exist, the writer's included
  std::unique_ptr<Chunk> active_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::unique_ptr<Chunk>> full_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Chunk>> free_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, uint32_t> numbers_ ABSL_GUARDED_BY(mutex_);
};

absl::Status Recorder::Start(const std::string& path, absl::string_view rank, Clock clock) {
  if (file_.IsOpen()) return absl::FailedPreconditionError("a trace is being written already");
  absl::StatusOr<TraceFile> file = TraceFile::Create(path);
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  process_ = getpid();
  now_of_trace.store(clock.now, std::memory_order_relaxed);
  header_ = Header(rank, clock.kind);
  {
    LockHolder lock(&mutex_);
    ForgetLocked();
    session_.fetch_add(1);
    active_ = NewChunkLocked();
  }
  [[maybe_unused]] static const int watched =
      pthread_atfork(nullptr, nullptr, [] { Recorder::Get().Abandon(); });
  internal::on.store(true, std::memory_order_relaxed);  // before the writer, which may have to end the trace
  if (StartWriter()) return absl::OkStatus();
  internal::on.store(false, std::memory_order_relaxed);
  file_.Close();
  return absl::ResourceExhaustedError("cannot start a thread for it");
}

std::string Recorder::Header(absl::string_view rank, ClockKind clock) const {
  FileHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.header_bytes = sizeof header;
  header.process = static_cast<uint32_t>(process_);
  header.clock = static_cast<uint32_t>(clock);
  header.start_ns = Now();
  header.wall_ns = static_cast<uint64_t>(Nanoseconds(CLOCK_REALTIME));
  std::memcpy(header.rank, rank.data(), std::min(rank.size(), sizeof header.rank - 1));
  if (gethostname(header.host, sizeof header.host) != 0) header.host[0] = '\0';
  header.host[sizeof header.host - 1] = '\0';
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

void Recorder::ForgetLocked() {
  stopping_ = false;
  threads_ = 0;
  lost_ = 0;
  chunks_ = 0;
  active_.reset();
  full_.clear();
  free_.clear();
  numbers_.clear();
}

// The job's signals are for the job's threads.
bool Recorder::StartWriter() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(
      &writer_, nullptr,
      [](void* recorder) -> void* {
        pthread_setname_np(pthread_self(), "weir-trace");
        static_cast<Recorder*>(recorder)->Write();
        return nullptr;
      },
      this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  has_writer_ = failed == 0;
  if (has_writer_) threads_started_.fetch_add(1, std::memory_order_relaxed);
  return has_writer_;
}

void Recorder::Stop() {
  if (!has_writer_ || getpid() != process_) return;
  if (On()) Append({.kind = Kind::kEnd});
  internal::on.store(false, std::memory_order_relaxed);
  {
    LockHolder lock(&mutex_);
    stopping_ = true;
    work_.Signal();
  }
  pthread_join(writer_, nullptr);
  has_writer_ = false;
  file_.Close();
}

uint32_t Recorder::NumberOf(absl::string_view text) {
  LockHolder lock(&mutex_);
  if (active_ == nullptr) return 0;
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) return found->second;
  if (numbers_.size() + 1 >= kMostStrings) return 0;
  const bool full = active_->strings.size() + kMostTextBytes + 8 > kMostStringBytes;
  if (full && !NextChunkLocked()) return 0;
  const auto number = static_cast<uint32_t>(numbers_.size() + 1);
  numbers_.emplace(std::string(text), number);
  AppendString(number, text, &active_->strings);
  return number;
}

uint32_t Recorder::NumberOf(Stream stream) {
  const uint64_t session = session_.load(std::memory_order_relaxed);
  if (last_stream.session != session || last_stream.stream != stream) {
    const std::string name =
        stream.IsDefault() ? "default stream" : absl::StrCat("stream 0x", absl::Hex(stream.handle()));
    last_stream = {session, stream, NumberOf(name)};
  }
  return last_stream.number;
}

void Recorder::Append(Record first, std::span<const Tensor> tensors, uint8_t flags) {
  LockHolder lock(&mutex_);
  if (active_ == nullptr) return;
  const uint64_t now = Now();
  if (this_thread.session != session_.load(std::memory_order_relaxed)) NoteThreadLocked(now);
  first.time_ns = now;
  first.thread = this_thread.number;
  AppendLocked(first);
  for (const Tensor& tensor : tensors) {
    AppendLocked(Record{now, tensor.storage.value(), tensor.bytes.count(), 0, this_thread.number,
                        Kind::kTensor, static_cast<uint8_t>(tensor.flags | flags)});
  }
}

void Recorder::NoteThreadLocked(uint64_t now) {
  if (threads_ != kManyThreads) ++threads_;
  this_thread = {session_.load(std::memory_order_relaxed), threads_};
  AppendLocked({.time_ns = now,
                .amount = static_cast<uint64_t>(syscall(SYS_gettid)),
                .thread = threads_,
                .kind = Kind::kThread});
}

void Recorder::AppendLocked(const Record& record) {
  const bool room = active_->count < kMostRecords || NextChunkLocked();
  if (!room) {
    ++lost_;
    return;
  }
  if (lost_ > 0) {  // a new chunk has room for both
    active_->records[active_->count++] = {
        .time_ns = record.time_ns, .amount = lost_, .thread = record.thread, .kind = Kind::kLost};
    lost_ = 0;
  }
  active_->records[active_->count++] = record;
}

// False: too much waits for the disk.
bool Recorder::NextChunkLocked() {
  std::unique_ptr<Chunk> next = NewChunkLocked();
  if (next == nullptr) return false;
  full_.push_back(std::move(active_));
  active_ = std::move(next);
  work_.Signal();
  return true;
}

std::unique_ptr<Chunk> Recorder::NewChunkLocked() {
  std::unique_ptr<Chunk> chunk;
  if (!free_.empty()) {
    chunk = std::move(free_.back());
    free_.pop_back();
  } else if (chunks_ < kMostChunks) {
    chunk.reset(new Chunk);
    ++chunks_;
  }
  return chunk;
}

// The next chunk to write; null when there is none any more. Once `*last` is true no other will come.
std::unique_ptr<Chunk> Recorder::TakeChunk(bool* last) {
  LockHolder lock(&mutex_);
  if (full_.empty() && !stopping_) mutex_.WaitWithTimeout(&work_, kFlushAge);
  std::unique_ptr<Chunk> chunk;
  if (!full_.empty()) {
    chunk = std::move(full_.front());
    full_.pop_front();
  } else if (active_->count > 0 || !active_->strings.empty()) {
    if (std::unique_ptr<Chunk> next = NewChunkLocked()) chunk = std::exchange(active_, std::move(next));
  }
  *last = stopping_ && chunk == nullptr;
  return chunk;
}

void Recorder::EndEarly(const absl::Status& why) {
  internal::on.store(false, std::memory_order_relaxed);
  Log(LogLevel::kWarn, "WEIR_TRACE: ", why.message(), "; the trace ends here, the job goes on");
}

// The writer thread. It writes the header too: on the job's threads a limit of the file's size is a signal that kills.
void Recorder::Write() {
  FrameEncoder encoder;
  absl::Status status = file_.Append(header_);
  if (!status.ok()) EndEarly(status);
  for (bool last = false; !last;) {
    std::unique_ptr<Chunk> chunk = TakeChunk(&last);
    if (chunk == nullptr) continue;
    if (status.ok()) {
      const std::span<const char> frame = encoder.Encode(chunk->strings, {chunk->records, chunk->count});
      status = frame.empty() ? absl::ResourceExhaustedError("no memory to compress it") : file_.Append(frame);
      if (!status.ok()) EndEarly(status);
    }
    chunk->count = 0;
    chunk->strings.clear();
    LockHolder lock(&mutex_);
    free_.push_back(std::move(chunk));
  }
}

}  // namespace

Clock MachineClock() { return {ClockKind::kMachine, &MachineNow}; }
absl::Status Start(const std::string& path, absl::string_view rank, Clock clock) {
  return Recorder::Get().Start(path, rank, clock);
}
void Stop() { Recorder::Get().Stop(); }
int ThreadsStarted() { return Recorder::Get().threads_started(); }

uint64_t Now() { return static_cast<uint64_t>(now_of_trace.load(std::memory_order_relaxed)()); }

uint32_t NumberOf(absl::string_view text) { return On() ? Recorder::Get().NumberOf(text) : 0; }

void RecordAllocation(int device, DeviceAddr address, Bytes bytes, Stream stream) {
  if (!On()) return;
  Recorder& recorder = Recorder::Get();
  recorder.Append({.address = address.value(),
                   .amount = bytes.count(),
                   .number = recorder.NumberOf(stream),
                   .kind = Kind::kAllocate,
                   .detail = static_cast<uint8_t>(device)});
}

void RecordFree(DeviceAddr address) {
  if (On()) Recorder::Get().Append({.address = address.value(), .kind = Kind::kFree});
}

void RecordOutOfMemory(int device, Bytes bytes) {
  if (!On()) return;
  Recorder::Get().Append(
      {.amount = bytes.count(), .kind = Kind::kOutOfMemory, .detail = static_cast<uint8_t>(device)});
}

void RecordPeaks(int device, Bytes allocated, Bytes reserved) {
  if (!On()) return;
  Recorder::Get().Append({.address = allocated.count(),
                          .amount = reserved.count(),
                          .kind = Kind::kPeaks,
                          .detail = static_cast<uint8_t>(device)});
}

void RecordMove(Kind kind, int device, DeviceAddr address, Bytes bytes) {
  if (!On()) return;
  Recorder::Get().Append({.address = address.value(),
                          .amount = bytes.count(),
                          .kind = kind,
                          .detail = static_cast<uint8_t>(device)});
}

void RecordWait(WaitCause cause, uint64_t began_ns) {
  if (!On()) return;
  const uint64_t now = Now();
  Recorder::Get().Append({.amount = now > began_ns ? now - began_ns : 0,
                          .kind = Kind::kWait,
                          .detail = static_cast<uint8_t>(cause)});
}

void RecordPhase(Phase phase) {
  if (On()) Recorder::Get().Append({.kind = Kind::kPhase, .detail = static_cast<uint8_t>(phase)});
}

void RecordSum(DeviceAddr address, uint64_t sum, uint32_t result) {
  if (!On()) return;
  Recorder::Get().Append({.address = address.value(), .amount = sum, .number = result, .kind = Kind::kSum});
}

void RecordOpBegin(uint32_t name, OpKind kind, int64_t sequence, std::span<const Tensor> arguments) {
  if (!On()) return;
  Recorder::Get().Append({.address = static_cast<uint64_t>(std::max<int64_t>(sequence, 0)),
                          .amount = arguments.size(),
                          .number = name,
                          .kind = Kind::kOpBegin,
                          .detail = static_cast<uint8_t>(kind)},
                         arguments);
}

void RecordOpEnd(uint32_t name, std::span<const Tensor> results) {
  if (!On()) return;
  Recorder::Get().Append({.amount = results.size(), .number = name, .kind = Kind::kOpEnd}, results, kResult);
}

}  // namespace weir::trace
