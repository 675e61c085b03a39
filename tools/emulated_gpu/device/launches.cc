#include "tools/emulated_gpu/device/launches.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tools/emulated_gpu/device/capture.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/streams.h"

namespace weir::emulated {
namespace {

// Limits of every compute capability since 3.0; CUDA C++ programming guide, "Technical specifications".
bool Launchable(const Shape& shape) {
  const unsigned grid_most[3] = {0x7fffffff, 65535, 65535};
  const unsigned block_most[3] = {1024, 1024, 64};
  for (int i = 0; i < 3; ++i) {
    if (shape.grid[i] == 0 || shape.grid[i] > grid_most[i]) return false;
    if (shape.block[i] == 0 || shape.block[i] > block_most[i]) return false;
  }
  const size_t threads = size_t{shape.block[0]} * shape.block[1] * shape.block[2];
  return threads <= 1024 && shape.shared_bytes <= Settings().profile->shared_per_block_optin;
}

// The arguments as the kernel wants them; empty where its parameters are not known.
std::vector<char> LayOut(const Kernel& kernel, const Arguments& arguments) {
  std::vector<char> buffer;
  if (kernel.parameters == nullptr) return buffer;
  for (const Parameter& parameter : *kernel.parameters) {
    buffer.resize(std::max<size_t>(buffer.size(), parameter.offset + size_t{parameter.size}));
  }
  if (arguments.each == nullptr) {
    std::memcpy(buffer.data(), arguments.buffer, std::min(buffer.size(), arguments.buffer_size));
    return buffer;
  }
  for (size_t i = 0; i < kernel.parameters->size(); ++i) {
    const Parameter parameter = (*kernel.parameters)[i];
    std::memcpy(buffer.data() + parameter.offset, arguments.each[i], parameter.size);
  }
  return buffer;
}

}  // namespace

Status Launch(const Shape& shape, CUstream handle, const Kernel& kernel, const Arguments& arguments) {
  Stream* stream = FindStream(handle, "kernel launch");
  if (stream == nullptr || stream->device != CurrentDevice()) return CUDA_ERROR_INVALID_HANDLE;
  if (!Launchable(shape)) return CUDA_ERROR_INVALID_VALUE;
  if (Settings().kernels == Kernels::kCpu) {
    Report("kernel launch with kernels cpu, it computes nothing: %s", kernel.name.c_str());
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const bool captures = CaptureDecides(*stream);
  if (captures) {
    if (const Status refused = CheckCapture(*stream); refused != CUDA_SUCCESS) return refused;
  } else {
    Counted().launches.fetch_add(1, std::memory_order_relaxed);
    if (!Settings().checks || kernel.parameters == nullptr) NoteBlindLaunch();
  }
  const ArgumentPointers pointers = Settings().checks
                                        ? CheckArguments(kernel, arguments, shape.grid[0], shape.grid[1])
                                        : ArgumentPointers{};
  GraphNode* node = NoteLaunch(*stream, kernel.name.c_str(), pointers.first, pointers.count);
  if (node != nullptr) SetCapturedLaunch(node, &kernel, shape, LayOut(kernel, arguments));
  return CUDA_SUCCESS;
}

int BlocksPerMultiprocessor(int block_size, size_t shared) {
  const Profile& profile = *Settings().profile;
  int blocks = std::min(profile.blocks_per_multiprocessor, profile.threads_per_multiprocessor / block_size);
  if (shared > 0) blocks = std::min(blocks, static_cast<int>(profile.shared_per_multiprocessor / shared));
  return blocks;
}

Status LaunchLibraryCall(const char* name) {
  if (Settings().kernels == Kernels::kCpu) {
    Report("%s with kernels cpu, it computes nothing", name);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Counted().launches.fetch_add(1, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

Status LaunchUnknownLibraryCall(const char* name) {
  if (const Status refused = LaunchLibraryCall(name); refused != CUDA_SUCCESS) return refused;
  Counted().unchecked_launches.fetch_add(1, std::memory_order_relaxed);
  NoteBlindLaunch();
  return CUDA_SUCCESS;
}

}  // namespace weir::emulated
