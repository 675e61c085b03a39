#include "tools/emulated_gpu/device/kernels.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>

#include "tools/emulated_gpu/device/fat_binary.h"

namespace weir::emulated {
namespace {

std::shared_mutex stubs_mutex;
auto& stubs = *new std::unordered_map<const void*, const Kernel*>;  // guarded by stubs_mutex

std::mutex images_mutex;  // held while an image is read, so that two threads do not both do it
auto& images =
    *new std::unordered_map<const void*, ParameterTable>;  // guarded by images_mutex; never shrinks

std::string Demangled(const char* mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  const std::string name = status == 0 ? text : mangled;
  std::free(text);
  return name;
}

const Kernel* FindStub(const void* host) {
  std::shared_lock<std::shared_mutex> lock(stubs_mutex);
  const auto known = stubs.find(host);
  return known == stubs.end() ? nullptr : known->second;
}

Kernel DescribeStub(const void* host) {
  using Registered = const char* (*)(const void*, size_t*, const void**);
  static const auto registered =
      reinterpret_cast<Registered>(dlsym(RTLD_DEFAULT, "weir_emulated_registered_name"));
  const void* image = nullptr;
  const char* mangled = registered == nullptr ? nullptr : registered(host, nullptr, &image);
  if (mangled == nullptr) {
    char text[64];
    std::snprintf(text, sizeof text, "unregistered kernel %p", host);
    return {text, nullptr, "it was not registered", {}};
  }
  std::lock_guard<std::mutex> lock(images_mutex);
  ParameterTable& table = images[image];
  std::string unreadable;
  if (image == nullptr) {
    unreadable = "it has no image";
  } else if (table.count(KernelNameHash(mangled)) == 0) {
    unreadable = ReadKernelImage(image, mangled, &table);
  }
  return DescribeKernel(mangled, table, unreadable);
}

}  // namespace

Kernel DescribeKernel(const char* mangled, const ParameterTable& table, const std::string& unreadable) {
  Kernel kernel{Demangled(mangled), nullptr, "", {}};
  const auto found = table.find(KernelNameHash(mangled));
  if (found != table.end()) {
    kernel.parameters = &found->second;
    kernel.words = FindArgumentWords(kernel.name, found->second);
  } else {
    kernel.unknown = unreadable.empty() ? "its image does not list it" : unreadable;
  }
  return kernel;
}

const Kernel& KernelOfHostStub(const void* host) {
  const Kernel* known = FindStub(host);
  if (known != nullptr) return *known;
  auto* described = new Kernel(DescribeStub(host));
  std::lock_guard<std::shared_mutex> lock(stubs_mutex);
  const auto [kept, is_new] = stubs.emplace(host, described);
  if (!is_new) delete described;
  return *kept->second;
}

}  // namespace weir::emulated
