// Modules, functions and launches of code that is loaded at run time (NVRTC's, Triton's).
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "tools/emulated_gpu/device/fat_binary.h"
#include "tools/emulated_gpu/device/launches.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

namespace {

struct Module {
  ParameterTable table;
  std::string unreadable;
  std::map<std::string, Kernel> functions;  // a function handle is the address of its kernel
};

std::mutex mutex;
auto& modules = *new std::set<Module*>;  // guarded by mutex, with what it points to

Module* Find(CUmodule handle) {
  auto* module = reinterpret_cast<Module*>(handle);
  return modules.count(module) == 0 ? nullptr : module;
}

// The other way to pass arguments: one buffer, named by a list of pairs.
bool ReadExtra(void** extra, Arguments* arguments) {
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      arguments->buffer = extra[1];
    } else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1] != nullptr) {
      arguments->buffer_size = *static_cast<const size_t*>(extra[1]);
    } else {
      return false;
    }
  }
  return true;
}

constexpr size_t kLeastImage = 64;  // an ELF header, which ElfSize reads

CUresult LoadImage(CUmodule* handle, const void* image) {
  auto* module = new Module;
  module->unreadable = ReadKernelImage(image, nullptr, &module->table);
  std::lock_guard<std::mutex> lock(mutex);
  modules.insert(module);
  *handle = reinterpret_cast<CUmodule>(module);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuModuleLoadFatBinary(CUmodule* handle, const void* image) {
  WEIR_DRIVER_FAULT_POINT();
  return cuModuleLoadData(handle, image);
}

CUresult cuModuleLoad(CUmodule* handle, const char* path) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (handle == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  std::string image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (image.size() < kLeastImage || ElfSize(image.data()) > image.size()) return CUDA_ERROR_INVALID_IMAGE;
  return LoadImage(handle, image.data());
}

CUresult cuModuleLoadData(CUmodule* handle, const void* image) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (handle == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return LoadImage(handle, image);
}

CUresult cuModuleLoadDataEx(CUmodule* handle, const void* image, unsigned int, CUjit_option*, void**) {
  WEIR_DRIVER_FAULT_POINT();
  return cuModuleLoadData(handle, image);
}

CUresult cuModuleUnload(CUmodule handle) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  std::lock_guard<std::mutex> lock(mutex);
  Module* module = Find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  modules.erase(module);  // the names of its kernels stay, for reports about work that is in flight
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  std::lock_guard<std::mutex> lock(mutex);
  Module* module = Find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto kernel = module->functions.find(name);
  if (kernel == module->functions.end()) {
    kernel = module->functions.emplace(name, DescribeKernel(name, module->table, module->unreadable)).first;
  }
  *function = reinterpret_cast<CUfunction>(&kernel->second);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Profile& profile = *Settings().profile;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;  // as cudaFuncGetAttributes
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = profile.major * 10 + profile.minor;
      return CUDA_SUCCESS;
    default:
      *value = 0;
      return CUDA_SUCCESS;
  }
}

CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                        CUstream stream, void** each, void** extra) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Arguments arguments{each};
  if (extra != nullptr && (each != nullptr || !ReadExtra(extra, &arguments))) return CUDA_ERROR_INVALID_VALUE;
  return Launch({{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared}, stream,
                *reinterpret_cast<const Kernel*>(function), arguments);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra) {
  WEIR_DRIVER_FAULT_POINT();
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                        config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream,
                        arguments, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared, CUstream stream,
                                   void** arguments) {
  WEIR_DRIVER_FAULT_POINT();
  return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                        arguments, nullptr);
}
