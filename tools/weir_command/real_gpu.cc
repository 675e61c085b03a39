#include "tools/weir_command/real_gpu.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace weir {
namespace {

// CU_DEVICE_ATTRIBUTE_...
constexpr int kComputeMode = 20;  // 2 is CU_COMPUTEMODE_PROHIBITED
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;
constexpr int kVirtualMemoryManagement = 102;  // ..._SUPPORTED

// Declared here and not taken from cuda.h, which only allocator/cuda/ includes.
struct DriverFunctions {
  int (*init)(unsigned);
  int (*version)(int*);
  int (*count)(int*);
  int (*device)(int*, int);
  int (*name)(char*, int, int);
  int (*total)(size_t*, int);
  int (*attribute)(int*, int, int);
};

template <typename Function>
void Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
}

// 0 where the driver does not say.
int Attribute(const DriverFunctions& driver, int attribute, int device) {
  int value = 0;
  return driver.attribute != nullptr && driver.attribute(&value, attribute, device) == 0 ? value : 0;
}

DeviceFound LookAtDevice(const DriverFunctions& driver, int ordinal) {
  DeviceFound found;
  int device = 0;
  size_t total = 0;
  char name[256] = {};
  if (driver.device == nullptr || driver.device(&device, ordinal) != 0) return found;
  if (driver.name != nullptr && driver.name(name, sizeof(name) - 1, device) == 0) found.name = name;
  if (driver.total != nullptr && driver.total(&total, device) == 0) found.total = Bytes(total);
  found.has_virtual_memory = Attribute(driver, kVirtualMemoryManagement, device) != 0;
  found.is_prohibited = Attribute(driver, kComputeMode, device) == 2;
  if (const int major = Attribute(driver, kComputeCapabilityMajor, device); major != 0)
    found.capability = absl::StrCat(major, Attribute(driver, kComputeCapabilityMinor, device));
  return found;
}

}  // namespace

DriverFound LookAtDriver(const std::string& path) {
  DriverFound found;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    found.problem = absl::StrCat("no NVIDIA driver (", path, " cannot be loaded)");
    return found;
  }
  DriverFunctions driver{};
  Find(library, "cuInit", &driver.init);
  Find(library, "cuDriverGetVersion", &driver.version);
  Find(library, "cuDeviceGetCount", &driver.count);
  Find(library, "cuDeviceGet", &driver.device);
  Find(library, "cuDeviceGetName", &driver.name);
  Find(library, "cuDeviceTotalMem_v2", &driver.total);
  Find(library, "cuDeviceGetAttribute", &driver.attribute);
  if (driver.init == nullptr || driver.count == nullptr) {
    found.problem = absl::StrCat(path, " is not an NVIDIA driver");
    return found;
  }
  if (const int error = driver.init(0); error != 0) {
    found.problem = absl::StrCat("the NVIDIA driver shows no device (cuInit: error ", error, ")");
    return found;
  }
  int version = 0, count = 0;
  if (driver.version != nullptr && driver.version(&version) == 0) {
    found.cuda = absl::StrCat(version / 1000, ".", version % 1000 / 10);
  }
  if (driver.count(&count) != 0 || count == 0) found.problem = "the NVIDIA driver shows no device";
  for (int i = 0; i < count; ++i) found.devices.push_back(LookAtDevice(driver, i));
  return found;
}

std::string WhyNoRealGpu() { return LookAtDriver("libcuda.so.1").problem; }

}  // namespace weir
