// The known profiles, in the form that a user's file has, each number with its source.
//
// [R] measured on hardware, by the source that is named; [D] the vendor's datasheet or documentation; [U] unverified: from
// memory, carried over from another card, or a guess. Rates marked [D] x r are datasheet rates times what the bf16 rate
// of the card reaches of its datasheet. PROJECT#N is a GitHub issue or pull request.
#include <string>

#include "tools/emulated_gpu/device/profile_text.h"

namespace weir::emulated {
namespace {

struct Known {
  const char* name;
  const char* parts[3];  // read one after the other
};

// Any host with an eager PyTorch on it.
constexpr char kHost[] = R"(
kernel_us 2           # [U]
copy_us 1.5           # [U]
launch_us 2.5         # [U] 2 to 5 us
copy_submit_us 2.8    # [R] pinned, kekzl/imp#1409; 2.3 to 3.5, meta-pytorch/torchcomms#2195
event_us 0.6          # [U] below 1 us
call_us 0.1           # [U]
start_us 2            # [U]
op_us 4               # [R] "4 us per op on CUDA", pytorch/pytorch#82793
nested_op_us 1        # [R] an add called from C++, pytorch/pytorch#41383
malloc_us 100         # [U]
free_us 50            # [U]
pin_us_per_mib 479    # [R] 0.49 s/GiB, one thread, rapidsai/cudf#23457
vmm_reserve_us 10     # [R] 9 to 19 us for 8 GB, justinchuby/onnx-genai
nvme_us 80            # [U] latency of one request
torch_malloc_us 0.327 # [R] tools/bench_host on an AMD EPYC, as the next eight
torch_free_us 0.2     # [R]
weir_op_us 0.226      # [R]
weir_event_us 0.033   # [R]
weir_touch_us 0.031   # [R]
weir_malloc_us 0.24   # [R]
weir_free_us 0.07     # [R]
weir_page_in_us 0.365 # [R]
weir_candidate_us 0.016  # [R]
weir_plan_us 1        # [U] Weir does not plan yet
weir_mapper_us 1      # [U] Weir has no such thread yet
)";

// Virtual memory calls per handle, by the numbers of an A100 under Linux.
constexpr char kVmm[] = R"(
vmm_create_us 29      # [U] vAttention (ASPLOS 2025), 2 MiB; 7 to 193 elsewhere
vmm_map_us 1.5        # [R] ovg-project/kvcached bench_vmm, A100
vmm_access_us 36      # [R] ovg-project/kvcached bench_vmm, A100
vmm_unmap_us 25.6     # [R] ovg-project/kvcached bench_vmm, A100
vmm_release_us 23     # [U] vAttention (ASPLOS 2025), 2 MiB
)";

constexpr char kH200[] = R"(
device_name NVIDIA H200   # [R] nvidia-smi
compute_major 9           # [D]
compute_minor 0           # [D]
vram_mib 143771           # [R] nvidia-smi
multiprocessors 132       # [R]
l2_mib 60                 # [R]
shared_per_multiprocessor_kib 228  # [D] CUDA C++ programming guide, "Technical specifications"
shared_per_block_kib 227           # [D] the same, as the next two
threads_per_multiprocessor 2048    # [D]
blocks_per_multiprocessor 32       # [D]
memory_bus_bits 6144      # [D]
clock_khz 1980000         # [D]
memory_clock_khz 3201000  # [D]
copy_engines 3            # [U]
fp64_tflops 53.6          # [D] 67 (tensor cores) x 0.8
fp32_tflops 53.6          # [D] 67 x 0.8
tf32_tflops 394           # [D] 494.5 x 0.8
bf16_tflops 788           # [R] 8192^3 product, random data; datasheet 989
fp16_tflops 788           # [U] as bf16
fp8_tflops 1577           # [D] 1979 x 0.8
int8_tops 1577            # [D] 1979 x 0.8
memory_gbps 4300          # [R] copy inside the device, bytes read and written; datasheet 4800
h2d_gbps 55               # [R] 55.6 on an H100, NVIDIA's page about nvbandwidth
d2h_gbps 52.8             # [R] H100, NVIDIA/nvbandwidth#24
h2d_both_gbps 44          # [U] to be measured
d2h_both_gbps 44          # [U] to be measured
pageable_h2d_gbps 10      # [U]
pageable_d2h_gbps 8       # [U]
host_ram_gib 256          # [D] DGX H200: 2 TiB for eight cards
host_memory_gbps 307      # [D] eight channels of DDR5-4800, one socket
nvme_read_gbps 27         # [R] four Gen5 drives beside an H200, DeepNVMe
nvme_write_gbps 11        # [R] the same
)";

constexpr char kH100[] = R"(
device_name NVIDIA H100 80GB HBM3  # [D]
compute_major 9           # [D]
compute_minor 0           # [D]
vram_mib 81559            # [U]
multiprocessors 132       # [D]
l2_mib 50                 # [D]
shared_per_multiprocessor_kib 228  # [D] CUDA C++ programming guide, "Technical specifications"
shared_per_block_kib 227           # [D] the same, as the next two
threads_per_multiprocessor 2048    # [D]
blocks_per_multiprocessor 32       # [D]
memory_bus_bits 5120      # [D]
clock_khz 1980000         # [D]
memory_clock_khz 2619000  # [D]
copy_engines 3            # [U]
fp64_tflops 47            # [D] 67 (tensor cores) x 0.7
fp32_tflops 47            # [D] 67 x 0.7
tf32_tflops 346           # [D] 494.5 x 0.7
bf16_tflops 700           # [U] datasheet 989
fp16_tflops 700           # [U] as bf16
fp8_tflops 1385           # [D] 1979 x 0.7
int8_tops 1385            # [D] 1979 x 0.7
memory_gbps 3000          # [U] datasheet 3350
h2d_gbps 55.6             # [R] NVIDIA's page about nvbandwidth
d2h_gbps 52.8             # [R] NVIDIA/nvbandwidth#24
h2d_both_gbps 44          # [U] to be measured
d2h_both_gbps 44          # [U] to be measured
pageable_h2d_gbps 10      # [U]
pageable_d2h_gbps 8       # [U]
host_ram_gib 256          # [D] DGX H100: 2 TiB for eight cards
host_memory_gbps 307      # [D] eight channels of DDR5-4800, one socket
nvme_read_gbps 27         # [U] as beside an H200
nvme_write_gbps 11        # [U] as beside an H200
)";

constexpr char kA100[] = R"(
device_name NVIDIA A100-SXM4-80GB  # [D]
compute_major 8           # [D]
compute_minor 0           # [D]
vram_mib 81251            # [U]
multiprocessors 108       # [D]
l2_mib 40                 # [D]
shared_per_multiprocessor_kib 164  # [D] CUDA C++ programming guide, "Technical specifications"
shared_per_block_kib 163           # [D] the same, as the next two
threads_per_multiprocessor 2048    # [D]
blocks_per_multiprocessor 32       # [D]
memory_bus_bits 5120      # [D]
clock_khz 1410000         # [D]
memory_clock_khz 1593000  # [D]
copy_engines 3            # [U]
fp64_tflops 16            # [D] 19.5 (tensor cores) x 0.83
fp32_tflops 16            # [D] 19.5 x 0.83
tf32_tflops 130           # [D] 156 x 0.83
bf16_tflops 260           # [U] datasheet 312
fp16_tflops 260           # [U] as bf16
fp8_tflops 260            # [D] none on this card: what fp16 reaches
int8_tops 518             # [D] 624 x 0.83
memory_gbps 1700          # [U] datasheet 2039
h2d_gbps 25               # [R] 24.8 to 26, NVIDIA/nvbandwidth#11
d2h_gbps 25               # [R] 25 to 26, NVIDIA/nvbandwidth#11
h2d_both_gbps 12          # [R] 11 to 13, NVIDIA/nvbandwidth#11 and #53, two cards on a switch
d2h_both_gbps 24.5        # [R] 24 to 25, the same
pageable_h2d_gbps 9       # [U]
pageable_d2h_gbps 7       # [U]
host_ram_gib 256          # [D] DGX A100 80GB: 2 TiB for eight cards
host_memory_gbps 205      # [D] eight channels of DDR4-3200, one socket
nvme_read_gbps 10         # [R] four Gen4 drives, DeepNVMe
nvme_write_gbps 5         # [R] the same
)";

constexpr char kRtx4090[] = R"(
device_name NVIDIA GeForce RTX 4090  # [D]
compute_major 8           # [D]
compute_minor 9           # [D]
vram_mib 24564            # [U]
multiprocessors 128       # [D]
l2_mib 72                 # [D]
shared_per_multiprocessor_kib 100  # [D] CUDA C++ programming guide, "Technical specifications"
shared_per_block_kib 99            # [D] the same, as the next two
threads_per_multiprocessor 1536    # [D]
blocks_per_multiprocessor 24       # [D]
memory_bus_bits 384       # [D]
clock_khz 2520000         # [D]
memory_clock_khz 10501000 # [D]
copy_engines 2            # [U]
fp64_tflops 1.2           # [D] 1.29 x 0.91
fp32_tflops 75            # [D] 82.6 x 0.91
tf32_tflops 75            # [D] 82.6 x 0.91
bf16_tflops 150           # [U] datasheet 165
fp16_tflops 150           # [U] as bf16
fp8_tflops 300            # [D] 330 x 0.91
int8_tops 600             # [D] 660 x 0.91
memory_gbps 920           # [U] datasheet 1008
h2d_gbps 25               # [U] PCIe 4 x16
d2h_gbps 25               # [U]
h2d_both_gbps 21          # [U] to be measured
d2h_both_gbps 21          # [U] to be measured
pageable_h2d_gbps 10      # [U]
pageable_d2h_gbps 8       # [U]
host_ram_gib 64           # [U]
host_memory_gbps 77       # [D] two channels of DDR5-4800
nvme_read_gbps 6.6        # [R] one Gen4 drive, DeepNVMe
nvme_write_gbps 4.5       # [R] 4 to 5, the same
)";

constexpr char kRtx3060[] = R"(
device_name NVIDIA GeForce RTX 3060  # [D]
compute_major 8           # [D]
compute_minor 6           # [D]
vram_mib 12288            # [D]
multiprocessors 28        # [D]
l2_mib 3                  # [U]
shared_per_multiprocessor_kib 100  # [D] CUDA C++ programming guide, "Technical specifications"
shared_per_block_kib 99            # [D] the same, as the next two
threads_per_multiprocessor 1536    # [D]
blocks_per_multiprocessor 16       # [D]
memory_bus_bits 192       # [D]
clock_khz 1777000         # [D]
memory_clock_khz 7501000  # [D]
copy_engines 2            # [U]
fp64_tflops 0.18          # [D] 0.199 x 0.9
fp32_tflops 11.4          # [D] 12.7 x 0.9
tf32_tflops 11.4          # [D] 12.7 x 0.9
bf16_tflops 22.8          # [U] 25.3 with fp32 accumulation x 0.9
fp16_tflops 22.8          # [U] as bf16
fp8_tflops 22.8           # [D] none on this card: what fp16 reaches
int8_tops 91              # [D] 101 x 0.9
memory_gbps 320           # [U] datasheet 360
h2d_gbps 24               # [U] PCIe 4 x16; many boards run x8
d2h_gbps 24               # [U]
h2d_both_gbps 20          # [U] to be measured
d2h_both_gbps 20          # [U] to be measured
pageable_h2d_gbps 9       # [U]
pageable_d2h_gbps 7       # [U]
host_ram_gib 32           # [U]
host_memory_gbps 51       # [D] two channels of DDR4-3200
nvme_read_gbps 6.6        # [R] one Gen4 drive, DeepNVMe
nvme_write_gbps 4.5       # [R] 4 to 5, the same
)";

constexpr Known kKnown[] = {{"h200", {kHost, kVmm, kH200}},
                            {"h100", {kHost, kVmm, kH100}},
                            {"a100-80g", {kHost, kVmm, kA100}},
                            {"rtx4090", {kHost, kVmm, kRtx4090}},
                            {"rtx3060-12g", {kHost, kVmm, kRtx3060}}};

}  // namespace

const char* KnownProfile(const std::string& name) {
  for (const Known& known : kKnown) {
    if (name != known.name) continue;
    static thread_local std::string text;
    text.clear();
    for (const char* part : known.parts) text += part;
    return text.c_str();
  }
  return nullptr;
}

std::string KnownProfileNames() {
  std::string names;
  for (const Known& known : kKnown) names += (names.empty() ? "" : " ") + std::string(known.name);
  return names;
}

}  // namespace weir::emulated
