// A profile with numbers that can be added up in the head, and what tests of the clock share. 1 GB/s is a byte a nanosecond.
#ifndef WEIR_TESTS_EMULATED_GPU_ROUND_PROFILE_H_
#define WEIR_TESTS_EMULATED_GPU_ROUND_PROFILE_H_

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace weir::emulated {

// Copies of 1 GB/s each way, half of that when both ways are busy, pageable ones 1 byte in 4 ns; kernels and memsets 2 GB/s.
// Nothing else takes time, so that a schedule is its copies and kernels alone.
inline constexpr char kRoundProfile[] = R"(base h200
memory_gbps 2
kernel_us 0
h2d_gbps 1
d2h_gbps 1
h2d_both_gbps 0.5
d2h_both_gbps 0.5
pageable_h2d_gbps 0.25
pageable_d2h_gbps 0.25
copy_us 0
launch_us 0
copy_submit_us 0
event_us 0
call_us 0
start_us 0
malloc_us 0
free_us 0
pin_us_per_mib 0
vmm_create_us 7
vmm_map_us 2
vmm_access_us 30
vmm_unmap_us 20
vmm_release_us 5
vmm_reserve_us 0
torch_malloc_us 0.05
torch_free_us 0.25
weir_op_us 0.5
weir_malloc_us 0.25
weir_free_us 0.25
weir_candidate_us 0.0004
nvme_read_gbps 1
nvme_us 3
)";

// Path of a file with the profile and `more` after it; removed when the process ends well.
class ProfileFile {
 public:
  explicit ProfileFile(const std::string& text)
      : path_("/tmp/weir_profile_" + std::to_string(getpid()) + "_" + std::to_string(++made_)) {
    std::ofstream(path_) << text;
  }
  ~ProfileFile() { std::remove(path_.c_str()); }
  ProfileFile(const ProfileFile&) = delete;
  ProfileFile& operator=(const ProfileFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  static inline int made_ = 0;
  const std::string path_;
};

}  // namespace weir::emulated

#endif
