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
                          Kind::kSum, Kind::kOutOfMemory, Kind::kFree, Kind::kEnd));
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
