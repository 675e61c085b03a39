// Reads the parameters of all kernels of a fat binary: the container that nvcc puts into a library, with one image per
// architecture. Needs no file and no tool: the container is in the memory of the process that registered it.
// Pure functions but for the one-time loading of libzstd.so.1. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_FAT_BINARY_H_
#define WEIR_EMULATED_GPU_DEVICE_FAT_BINARY_H_

#include <string>

#include "tools/emulated_gpu/device/cubin.h"

namespace weir::emulated {

// What __cudaRegisterFatBinary is given (its `data` leads to the container).
inline constexpr uint32_t kFatBinaryWrapper = 0x466243b1;
inline constexpr uint32_t kFatBinaryContainer = 0xba55ed50;

// Adds the kernels of an image as cuModuleLoadData takes it: a wrapper, a container or a cubin. Parameters are the
// same on every architecture, so the smallest image is read first, and the others only while `wanted` (a mangled name;
// null: one image is enough) is missing. Returns why something could not be read, "" if all is well.
std::string ReadKernelImage(const void* image, const char* wanted, ParameterTable* table);

}  // namespace weir::emulated

#endif
