#include "tools/weir_command/real_gpu.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace weir {

std::string WhyNoRealGpu() {
  // Declared here and not taken from cuda.h, which only allocator/cuda/ includes: int cuInit(unsigned), and
  // so on.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return "no NVIDIA driver (libcuda.so.1 cannot be loaded)";
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto get_count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  if (init == nullptr || get_count == nullptr) return "libcuda.so.1 is not an NVIDIA driver";
  if (const int error = init(0); error != 0)
    return absl::StrCat("the NVIDIA driver shows no device (cuInit: error ", error, ")");
  int count = 0;
  if (get_count(&count) != 0 || count == 0) return "the NVIDIA driver shows no device";
  return "";
}

}  // namespace weir
