// What a training step allocates, for programs that time allocators.
#ifndef WEIR_TOOLS_BENCH_HOST_STEP_SIZES_H_
#define WEIR_TOOLS_BENCH_HOST_STEP_SIZES_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace weir::bench {

// Bytes, as a transformer step asks for them: many small tensors, activations of 1 to 16 MiB, few large ones.
inline std::vector<size_t> StepSizes() {
  std::mt19937 random(1);
  std::vector<size_t> sizes;
  for (int i = 0; i < 4096; ++i) {
    const uint32_t kind = random() % 10;
    if (kind < 5) {
      sizes.push_back(4 + random() % (64 << 10));
    } else if (kind < 9) {
      sizes.push_back((1 << 20) + random() % (15 << 20));
    } else {
      sizes.push_back(size_t{32 << 20} + random() % (32 << 20));
    }
  }
  return sizes;
}

}  // namespace weir::bench

#endif  // WEIR_TOOLS_BENCH_HOST_STEP_SIZES_H_
