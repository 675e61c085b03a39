#include "tools/emulated_gpu/device/host_ram.h"

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/host_ram_abi.h"
#include "tools/emulated_gpu/device/profile.h"

namespace weir::emulated {

size_t HostRam() {
  const Options& settings = Settings();
  if (settings.kernels != Kernels::kNone || settings.profile == nullptr) return 0;
  return static_cast<size_t>(settings.profile->costs.host_ram_gib * 0x1p30);
}

bool PinHostBytes(size_t size) {
  const size_t ram = HostRam();
  return ram == 0 || TakeHostBytes(size, ram);
}

void UnpinHostBytes(size_t size) {
  if (HostRam() != 0) ReturnHostBytes(size);
}

}  // namespace weir::emulated

extern "C" __attribute__((visibility("default"))) uint64_t weir_emulated_host_ram(void) {
  return weir::emulated::HostRam();
}
