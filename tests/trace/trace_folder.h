// A folder of its own for a test's traces, and a trace read back whole.
#ifndef WEIR_TESTS_TRACE_TRACE_FOLDER_H_
#define WEIR_TESTS_TRACE_TRACE_FOLDER_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "trace/reader.h"

namespace weir::trace {

class TraceFolder : public testing::Test {
 protected:
  TraceFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir_trace_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~TraceFolder() override { std::filesystem::remove_all(folder_); }

  std::string PathOf(const std::string& name) const { return (folder_ / name).string(); }

  static std::string BytesOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void Write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  // All records; the test fails where the file is not read to its end.
  static std::vector<Record> RecordsOf(Reader& reader) {
    std::vector<Record> records;
    for (;;) {
      const auto frame = reader.NextFrame();
      EXPECT_TRUE(frame.ok()) << frame.status();
      if (!frame.ok() || !frame->has_value()) return records;
      records.insert(records.end(), (*frame)->begin(), (*frame)->end());
    }
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace weir::trace

#endif  // WEIR_TESTS_TRACE_TRACE_FOLDER_H_
