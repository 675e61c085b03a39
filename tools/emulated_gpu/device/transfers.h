// The bytes of one copy or memset: what it does when it runs, and what it takes from the host when it is enqueued. Values.
#ifndef WEIR_EMULATED_GPU_DEVICE_TRANSFERS_H_
#define WEIR_EMULATED_GPU_DEVICE_TRANSFERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weir::emulated {

struct Rows {  // a plain copy is one row
  size_t to_pitch = 0, from_pitch = 0, width = 0, height = 1;
};

// Bytes from the first to the last of the rows, gaps included.
size_t Span(size_t pitch, const Rows& rows);

class Transfer {
 public:
  static Transfer Move(void* to, const void* from, const Rows& rows) { return {to, from, rows, 0, 1}; }
  // `value` is repeated every `element` (1, 2 or 4) bytes.
  static Transfer Fill(void* to, unsigned value, size_t element, const Rows& rows) {
    return {to, nullptr, rows, value, element};
  }

  // The bytes become zeros, of whole pages of private host memory without touching them.
  static Transfer Drop(void* to, size_t bytes) { return {to, nullptr, {bytes, bytes, bytes, 1}, 0, kDrops}; }

  // Copies the source now: what the host does with it later does not matter.
  void Stage();
  // Notes what the source holds now; Run reports when it holds something else. `work` is the copy in the work log.
  void Watch(uint64_t work);

  void Run() const;

 private:
  Transfer(void* to, const void* from, const Rows& rows, unsigned value, size_t element)
      : to_(to), from_(from), rows_(rows), value_(value), element_(element) {}

  static constexpr size_t kDrops = 0;  // as an element

  uint64_t Checksum() const;

  void* to_;
  const void* from_;  // null: a memset
  Rows rows_;
  unsigned value_;
  size_t element_;
  std::shared_ptr<std::vector<char>> staged_;
  uint64_t watched_by_ = 0, checksum_ = 0;
};

}  // namespace weir::emulated

#endif
