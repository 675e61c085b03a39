// The device that is emulated, and what the environment asks for. Constant after the first call of Settings().
#ifndef WEIR_EMULATED_GPU_DEVICE_PROFILE_H_
#define WEIR_EMULATED_GPU_DEVICE_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::emulated {

// What a card, its driver and its host take for what they do. Rates are what good code reaches, not what a datasheet
// says. Each key of a profile (profile_text.h) is a field here; known_profiles.cc has the values and their sources.
struct Costs {
  // SMs: operations per second in 1e12 (an FMA is two), bytes of device memory per second in 1e9.
  double fp64_tflops, fp32_tflops, tf32_tflops, bf16_tflops, fp16_tflops, fp8_tflops, int8_tops, memory_gbps;
  double kernel_us;  // of every kernel, besides its work
  // Copies between pinned memory and the device, 1e9 bytes per second: alone, and with the other direction busy.
  double h2d_gbps, d2h_gbps, h2d_both_gbps, d2h_both_gbps;
  double pageable_h2d_gbps, pageable_d2h_gbps;  // staged by the driver
  double copy_us;                               // of every copy, besides its bytes
  // The host thread, per call.
  double launch_us, copy_submit_us, event_us, call_us;
  double start_us;  // from a call until idle hardware can start its work
  double op_us,
      nested_op_us;  // eager PyTorch, per operator that Python or autograd calls, that an operator calls
  // Memory calls: virtual memory per handle, the others per call; pinning per MiB.
  double vmm_create_us, vmm_map_us, vmm_access_us, vmm_unmap_us, vmm_release_us, vmm_reserve_us;
  double malloc_us, free_us, pin_us_per_mib;
  // The host's memory and drives.
  double host_ram_gib, host_memory_gbps, nvme_read_gbps, nvme_write_gbps, nvme_us;
  // Torch's own allocator, per call: part of op_us.
  double torch_malloc_us, torch_free_us;
  // Weir's own work on the host thread, for each (WeirEmulatedCharge; tools/bench_host).
  double weir_op_us, weir_event_us, weir_touch_us, weir_malloc_us, weir_free_us, weir_page_in_us,
      weir_candidate_us, weir_plan_us, weir_mapper_us;
};

struct Profile {
  std::string name;         // as in WEIR_GPU=emulated:NAME
  std::string device_name;  // as the driver prints it
  int major, minor;         // compute capability
  size_t vram_mib;
  int multiprocessors;
  size_t l2_bytes;
  size_t shared_per_multiprocessor, shared_per_block_optin;  // bytes
  int threads_per_multiprocessor, blocks_per_multiprocessor;
  int memory_bus_bits, clock_khz, memory_clock_khz, copy_engines;
  Costs costs;
};

enum class Kernels { kCpu, kNone };
enum class Reports { kAbort, kLog, kCount };  // WEIR_EMULATED_REPORTS=abort|log|count

struct Options {
  const Profile* profile = nullptr;  // null: WEIR_GPU names none that can be read, there is no device
  Kernels kernels = Kernels::kCpu;
  size_t vram_bytes = 0;     // of each device
  int devices = 1;           // physical ones: NAMExN
  std::vector<int> visible;  // those that CUDA numbers 0, 1, ...: CUDA_VISIBLE_DEVICES
  bool poison = false;       // WEIR_EMULATED_POISON=1: new device memory holds 0xCB instead of zeros
  bool lazy_streams =
      true;           // WEIR_EMULATED_STREAMS=lazy|eager: copies run when forced, or when they are enqueued
  uint64_t seed = 0;  // WEIR_EMULATED_SEED: 0: as late as possible; others run some work early
  Reports reports = Reports::kLog;
  bool checks = true;  // WEIR_EMULATED_CHECKS=off: of order and launch arguments, to measure what they cost
  size_t context_bytes = 0;  // WEIR_EMULATED_CONTEXT=SIZE: what each process's context takes of a card
  bool overcommit = false;   // WEIR_EMULATED_OVERCOMMIT=1: overcommit.h
  std::string figures;       // WEIR_EMULATED_FIGURES=FILE: figures.h
  bool timing = false;  // WEIR_EMULATED_TIMING=1: the exit tells what the clock says; queries follow it alone
  std::string mistake;  // why the options are unusable; empty when they are fine
};

const Options& Settings();

// "24GiB", "24G", "512MiB", "1073741824"; 0 when the text is no size. GiB and G are 2^30, GB is 10^9.
size_t ParseSize(const std::string& text);

}  // namespace weir::emulated

#endif
