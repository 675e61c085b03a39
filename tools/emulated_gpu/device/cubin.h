// Reads which parameters each kernel takes, and where they lie in its parameter buffer, from a cubin (the ELF
// image that holds kernels of one architecture). Pure functions; any thread.
//
// The layout is the one that `cuobjdump -elf` prints: one section `.nv.info.KERNEL` per kernel, a list of
// attributes, of which KPARAM_INFO tells one parameter's ordinal, offset and size.
#ifndef WEIR_EMULATED_GPU_DEVICE_CUBIN_H_
#define WEIR_EMULATED_GPU_DEVICE_CUBIN_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weir::emulated {

struct Parameter {
  uint16_t offset = 0;  // bytes, in the parameter buffer
  uint16_t size = 0;
};

// Parameters in the order of the kernel's arguments.
using Parameters = std::vector<Parameter>;

// By FNV-1a hash of the mangled kernel name: 476 images of torch hold 100 000 names of 200 bytes each.
using ParameterTable = std::unordered_map<uint64_t, Parameters>;
uint64_t KernelNameHash(std::string_view name);

// Bytes of the ELF image at `image` by its own headers, 0 if it is none. Reads the 64 bytes of its header.
size_t ElfSize(const void* image);

// Adds every kernel of a cubin whose parameters are listed as we know it. False, and nothing added, when `image` is no well-formed ELF file of `size`
// bytes.
bool ReadCubin(const void* image, size_t size, ParameterTable* table);

}  // namespace weir::emulated

#endif
