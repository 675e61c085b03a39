// What the reader makes of traces that were cut, altered or never were any.
#include "trace/reader.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/trace/trace_folder.h"
#include "trace/recorder.h"
#include "trace/summary.h"

namespace weir::trace {
namespace {

using testing::HasSubstr;

constexpr uint64_t kCalls = 100;

class ReaderTest : public TraceFolder {
 protected:
  // A trace of two frames, small enough to be cut at every byte.
  std::string Sample() {
    const std::string path = PathOf("sample.wtr");
    EXPECT_TRUE(Start(path, "0").ok());
    RecordFree(DeviceAddr(1));
    Stop();
    std::string bytes = BytesOf(path);
    FrameEncoder encoder;
    std::string name;
    AppendString(1, "aten::mm", &name);
    std::vector<Record> records;
    for (uint64_t i = 0; i < kCalls; ++i) {
      records.push_back({.time_ns = i, .number = 1, .kind = Kind::kOpBegin});
      records.push_back({.time_ns = i, .address = i % 16 * 4096, .amount = 4096, .kind = Kind::kAllocate});
      records.push_back({.time_ns = i, .number = 1, .kind = Kind::kOpEnd});
    }
    const std::span<const char> frame = encoder.Encode(name, records);
    return bytes.append(frame.begin(), frame.end());
  }
  absl::Status Try(const std::string& bytes) {
    const std::string path = PathOf("tried.wtr");
    Write(path, bytes);
    auto reader = Reader::Open(path);
    return reader.ok() ? Summarise(**reader).status() : reader.status();
  }
};

TEST_F(ReaderTest, Trace_CutAtAnyByte_OpensAndTellsWhatIsMissing) {
  const std::string whole = Sample(), path = PathOf("cut.wtr");
  uint64_t records = 0, whole_bytes = 0;
  for (size_t size = 0; size <= whole.size(); ++size) {
    Write(path, whole.substr(0, size));
    auto reader = Reader::Open(path);
    ASSERT_TRUE(reader.ok()) << size << ": " << reader.status();
    uint64_t read = 0;
    for (;;) {
      auto frame = (*reader)->NextFrame();
      ASSERT_TRUE(frame.ok()) << size << ": " << frame.status();
      if (!frame->has_value()) break;
      read += (*frame)->size();
    }
    ASSERT_GE(read, records) << "a longer file holds no less";
    if (read > records || size == sizeof(FileHeader)) whole_bytes = size;
    ASSERT_EQ((*reader)->cut_bytes(), size - whole_bytes);
    records = read;
  }
  // Three of each call; in the frame before: the thread's, the free's and the end's.
  EXPECT_EQ(records, kCalls * 3 + 3);
}

TEST_F(ReaderTest, Trace_Altered_IsReadOrRefused) {
  constexpr uint32_t kSeed = 20261202;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const std::string whole = Sample();
  int refused = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string bytes = whole;
    for (uint32_t change = 0; change < 1 + random() % 8; ++change) {
      const size_t at = random() % 2 == 0 ? random() % bytes.size() : random() % 192;
      if (random() % 4 == 0) {
        bytes.insert(at, 1 + random() % 16, static_cast<char>(random()));
      } else {
        bytes[at] = static_cast<char>(random());
      }
    }
    const absl::Status status = Try(bytes);
    if (status.ok()) continue;
    ++refused;
    EXPECT_THAT(std::string(status.message()), HasSubstr("tried.wtr"));
  }
  EXPECT_GT(refused, 0);
}

// Behind a sound checksum: what only a hostile writer makes.
TEST_F(ReaderTest, Records_OfAnyBytes_AreReadOrRefused) {
  constexpr uint32_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const std::string header = Sample().substr(0, sizeof(FileHeader));
  FrameEncoder encoder;
  for (int i = 0; i < 200; ++i) {
    std::vector<Record> records(1 + random() % 512);
    for (Record& record : records) {
      auto* words = reinterpret_cast<uint32_t*>(&record);
      for (size_t word = 0; word < sizeof record / sizeof *words; ++word) words[word] = random();
      record.kind = static_cast<Kind>(random() % (kKinds + 2));
      record.address %= 8;
    }
    std::string strings(random() % 3 == 0 ? random() % 64 : 0, '\0');
    for (char& c : strings) c = static_cast<char>(random());
    const std::span<const char> frame = encoder.Encode(strings, records);
    const absl::Status status = Try(header + std::string(frame.begin(), frame.end()));
    EXPECT_TRUE(status.ok() || !strings.empty()) << status;
  }
}

TEST_F(ReaderTest, Trace_OfAnotherVersion_IsRefusedByNumber) {
  std::string bytes = Sample();
  bytes[offsetof(FileHeader, version)] = 7;
  EXPECT_THAT(std::string(Try(bytes).message()),
              HasSubstr("is a trace of version 7; this weir reads version 1"));
}

TEST_F(ReaderTest, File_ThatIsNoTrace_IsRefused) {
  EXPECT_THAT(std::string(Try("#!/bin/sh\n").message()), HasSubstr("is no trace of Weir"));
  EXPECT_FALSE(Reader::Open(PathOf("missing.wtr")).ok());
}

}  // namespace
}  // namespace weir::trace
