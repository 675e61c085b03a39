// The devices that can be emulated, and what the environment asks for. Constant after the first call of
// Settings().
#ifndef WEIR_EMULATED_GPU_DEVICE_PROFILE_H_
#define WEIR_EMULATED_GPU_DEVICE_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace weir::emulated {

struct Profile {
  const char* name;         // as in WEIR_GPU=emulated:NAME
  const char* device_name;  // as the driver prints it
  int major, minor;         // compute capability
  size_t vram_mib;
  int multiprocessors;
  size_t l2_bytes;
  size_t shared_per_multiprocessor, shared_per_block_optin;  // bytes
  int threads_per_multiprocessor, blocks_per_multiprocessor;
  int memory_bus_bits, clock_khz, memory_clock_khz, copy_engines;
};

enum class Kernels { kCpu, kNone };
enum class Reports { kAbort, kLog, kCount };  // WEIR_EMULATED_REPORTS=abort|log|count

struct Options {
  const Profile* profile = nullptr;  // null: the name in WEIR_GPU is unknown, there is no device
  Kernels kernels = Kernels::kCpu;
  size_t vram_bytes = 0;
  bool visible = true;  // false when CUDA_VISIBLE_DEVICES hides device 0
  bool poison = false;  // WEIR_EMULATED_POISON=1: new device memory holds 0xCB instead of zeros
  bool lazy_streams =
      true;           // WEIR_EMULATED_STREAMS=lazy|eager: copies run when forced, or when they are enqueued
  uint64_t seed = 0;  // WEIR_EMULATED_SEED: 0: as late as possible; others run some work early
  Reports reports = Reports::kLog;
  bool checks = true;   // WEIR_EMULATED_CHECKS=off: of order and launch arguments, to measure what they cost
  std::string mistake;  // why the options are unusable; empty when they are fine
};

const Options& Settings();

// "24GiB", "24G", "512MiB", "1073741824"; 0 when the text is no size. GiB and G are 2^30, GB is 10^9.
size_t ParseSize(const std::string& text);

}  // namespace weir::emulated

#endif
