#include "trace/recorder.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/trace/trace_folder.h"

namespace weir::trace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using RecorderTest = TraceFolder;

std::vector<Kind> KindsOf(const std::vector<Record>& records) {
  std::vector<Kind> kinds;
  for (const Record& record : records) kinds.push_back(record.kind);
  return kinds;
}

TEST_F(RecorderTest, Trace_OfEveryKind_ReadsBackAsRecorded) {
  const std::string path = PathOf("a.wtr");
  ASSERT_TRUE(Start(path, "3").ok());
  const uint32_t name = NumberOf("aten::add.Tensor");
  EXPECT_EQ(NumberOf("aten::add.Tensor"), name);
  RecordAllocation(2, DeviceAddr(0x1000), MiB(6), Stream(0xabc));
  const Tensor arguments[] = {{DeviceAddr(0x1000), MiB(6), kWritten | kLeaf},
                              {DeviceAddr(0x2000), KiB(1), 0}};
  RecordOpBegin(name, OpKind::kOperator, 17, arguments);
  RecordOpEnd(name, std::span(arguments, 1));
  RecordMove(Kind::kEvict, 2, DeviceAddr(0x1000), MiB(8));
  RecordMove(Kind::kFetch, 2, DeviceAddr(0x1000), MiB(8));
  RecordWait(WaitCause::kPins, Now());
  RecordPhase(Phase::kBackward);
  RecordSum(DeviceAddr(0x1000), 99, 1);
  RecordOutOfMemory(2, GiB(1));
  RecordPeaks(2, MiB(6), MiB(8));
  RecordFree(DeviceAddr(0x1000));
  Stop();

  auto reader = Reader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->header()->process, static_cast<uint32_t>(getpid()));
  EXPECT_STREQ((*reader)->header()->rank, "3");
  const std::vector<Record> records = RecordsOf(**reader);
  ASSERT_THAT(KindsOf(records),
              ElementsAre(Kind::kThread, Kind::kAllocate, Kind::kOpBegin, Kind::kTensor, Kind::kTensor,
                          Kind::kOpEnd, Kind::kTensor, Kind::kEvict, Kind::kFetch, Kind::kWait, Kind::kPhase,
                          Kind::kSum, Kind::kOutOfMemory, Kind::kPeaks, Kind::kFree, Kind::kEnd));
  EXPECT_EQ(records[0].amount, static_cast<uint64_t>(gettid()));
  EXPECT_EQ(records[1].address, 0x1000u);
  EXPECT_EQ(records[1].amount, MiB(6).count());
  EXPECT_EQ(records[1].detail, 2);
  EXPECT_EQ((*reader)->TextOf(records[1].number), "stream 0xabc");
  EXPECT_EQ((*reader)->TextOf(records[2].number), "aten::add.Tensor");
  EXPECT_EQ(records[2].address, 17u);
  EXPECT_EQ(records[2].amount, 2u);
  EXPECT_EQ(records[3].detail, kWritten | kLeaf);
  EXPECT_EQ(records[6].detail, kWritten | kLeaf | kResult);
  EXPECT_EQ(records[11].amount, 99u);
  EXPECT_EQ(records[13].address, MiB(6).count());
  EXPECT_EQ(records[13].amount, MiB(8).count());
  EXPECT_EQ(records[13].detail, 2);
  for (size_t i = 1; i < records.size(); ++i) EXPECT_GE(records[i].time_ns, records[i - 1].time_ns);
  EXPECT_EQ((*reader)->cut_bytes(), 0u);
}

TEST_F(RecorderTest, Trace_Off_RecordsNothingAndStartsNoThread) {
  EXPECT_FALSE(On());
  EXPECT_EQ(NumberOf("aten::mm"), 0u);
  RecordFree(DeviceAddr(0x1000));
  Stop();
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(PathOf("x")).parent_path()));
}

TEST_F(RecorderTest, Records_OfManyThreads_AreAllThereInOrder) {
  constexpr int kThreads = 8, kEach = 5000;
  const std::string path = PathOf("a.wtr");
  ASSERT_TRUE(Start(path, "0").ok());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (uint64_t i = 0; i < kEach; ++i)
        RecordAllocation(0, DeviceAddr((t + 1) << 32 | i), Bytes(1), Stream(t));
    });
  }
  for (std::thread& thread : threads) thread.join();
  Stop();
  auto reader = Reader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  uint64_t next[kThreads] = {};
  for (const Record& record : RecordsOf(**reader)) {
    if (record.kind != Kind::kAllocate) continue;
    const uint64_t thread = (record.address >> 32) - 1;
    EXPECT_EQ(record.address & 0xffffffff, next[thread]++);
  }
  for (uint64_t count : next) EXPECT_EQ(count, static_cast<uint64_t>(kEach));
}

TEST_F(RecorderTest, Path_ThatIsALinkOrAnotherFile_IsLeftAlone) {
  Write(PathOf("notes"), "not a trace");
  std::filesystem::create_symlink(PathOf("target"), PathOf("link"));
  EXPECT_THAT(std::string(Start(PathOf("notes"), "0").message()), HasSubstr("is no trace of Weir"));
  EXPECT_THAT(std::string(Start(PathOf("link"), "0").message()), HasSubstr("it is a link"));
  EXPECT_FALSE(Start(PathOf("no/such/folder"), "0").ok());
  EXPECT_EQ(BytesOf(PathOf("notes")), "not a trace");
  EXPECT_FALSE(std::filesystem::exists(PathOf("target")));
  EXPECT_FALSE(On());
}

TEST_F(RecorderTest, Disk_Full_EndsTheTraceAtAWholeFrame) {
  const std::string path = PathOf("a.wtr");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 64 << 10;
  ASSERT_TRUE(Start(path, "0").ok());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  testing::internal::CaptureStderr();
  uint64_t i = 0;  // addresses that do not compress
  while (On()) RecordFree(DeviceAddr(++i * 0x9e3779b97f4a7c15));
  Stop();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the trace ends here, the job goes on"));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  auto reader = Reader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  RecordsOf(**reader);
  EXPECT_EQ((*reader)->cut_bytes(), 0u);
}

TEST_F(RecorderTest, Disk_FullFromTheStart_EndsTheTraceAndNotTheProcess) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = sizeof(FileHeader) - 1;
  testing::internal::CaptureStderr();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small),
            0);  // a write on a thread of the job is a signal now, that kills
  ASSERT_TRUE(Start(PathOf("a.wtr"), "0").ok());
  RecordFree(DeviceAddr(1));
  Stop();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the trace ends here, the job goes on"));
  EXPECT_FALSE(On());
}

TEST_F(RecorderTest, Times_AreThoseOfTheClock) {
  ASSERT_TRUE(Start(PathOf("a.wtr"), "0", Clock{ClockKind::kVirtual, [] { return int64_t{77}; }}).ok());
  RecordFree(DeviceAddr(1));
  Stop();
  auto reader = Reader::Open(PathOf("a.wtr"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->header()->clock, static_cast<uint32_t>(ClockKind::kVirtual));
  EXPECT_EQ((*reader)->header()->start_ns, 77u);
  for (const Record& record : RecordsOf(**reader)) EXPECT_EQ(record.time_ns, 77u);
}

TEST_F(RecorderTest, ForkedChild_HasNoTrace) {
  ASSERT_TRUE(Start(PathOf("a.wtr"), "0").ok());
  RecordFree(DeviceAddr(1));
  const pid_t child = fork();
  if (child == 0) {
    const bool silent = !On();
    RecordFree(DeviceAddr(2));
    Stop();
    _exit(silent ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  Stop();
  auto reader = Reader::Open(PathOf("a.wtr"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT(KindsOf(RecordsOf(**reader)), ElementsAre(Kind::kThread, Kind::kFree, Kind::kEnd));
}

TEST_F(RecorderTest, File_IsOnlyForItsUser) {
  const std::string path = PathOf("a.wtr");
  ASSERT_TRUE(Start(path, "0").ok());
  Stop();
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace weir::trace
