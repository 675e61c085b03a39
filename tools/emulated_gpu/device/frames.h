// Physical device memory: the memfd and which of its bytes are taken. Used under the lock of vmm.cc.
#ifndef WEIR_EMULATED_GPU_DEVICE_FRAMES_H_
#define WEIR_EMULATED_GPU_DEVICE_FRAMES_H_

#include <cstddef>
#include <map>

namespace weir::emulated {

class PhysicalMemory {
 public:
  // First free offset with `size` bytes, -1 when the memfd cannot grow. Contents are zeros, or poison.
  long Take(size_t size, bool poison);
  // The pages go back to the system.
  void Return(long offset, size_t size);
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  long end_ = 0;                        // bytes of the memfd that were ever taken
  std::map<long, size_t> free_ranges_;  // below end_; neighbours are merged
};

}  // namespace weir::emulated

#endif
