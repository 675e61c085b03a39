// A cubin made by hand: an ELF file with one `.nv.info.KERNEL` section per kernel, as nvcc lays it out.
#ifndef WEIR_TESTS_EMULATED_GPU_MADE_CUBIN_H_
#define WEIR_TESTS_EMULATED_GPU_MADE_CUBIN_H_

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace weir::emulated {

struct MadeParameter {
  uint16_t offset, size;
};

struct MadeKernel {
  std::string name;
  std::vector<MadeParameter> parameters;
  bool second_version = false;  // KPARAM_INFO_V2
  int missing_bytes = 0;        // of the buffer, that no parameter fills
};

// The argument of a kernel over two lists of tensors, as torch's multi-tensor kernels take it: entries that no block uses are
// leftovers.
struct MadeLists {
  uint64_t addresses[110] = {};
  int64_t lengths[110] = {};
  unsigned char block_to_tensor[320] = {};
  int32_t block_to_chunk[320] = {};
  int32_t first = 0;
};
static_assert(sizeof(MadeLists) == 3368);

template <typename T>
void Append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::string MadeInfo(const MadeKernel& kernel) {
  std::string info;
  uint16_t end = 0;
  for (size_t i = kernel.parameters.size(); i-- > 0;) {  // nvcc lists the last one first
    const auto [offset, size] = kernel.parameters[i];
    end = std::max<uint16_t>(end, offset + size);
    Append<uint8_t>(info, 4);
    Append<uint8_t>(info, kernel.second_version ? 0x45 : 0x17);
    Append<uint16_t>(info, 12);
    Append<uint32_t>(info, 0);
    Append<uint16_t>(info, i);
    Append<uint16_t>(info, offset);
    Append<uint32_t>(info, kernel.second_version ? size : uint32_t{size} << 18 | 0x1f000);
  }
  Append<uint8_t>(info, 3);
  Append<uint8_t>(info, 0x19);  // bytes of the parameter buffer
  Append<uint16_t>(info, end + kernel.missing_bytes);
  return info;
}

inline std::string MadeCubin(const std::vector<MadeKernel>& kernels) {
  std::string names("\0.shstrtab\0", 11), body(sizeof(Elf64_Ehdr), '\0');
  std::vector<Elf64_Shdr> sections(2);
  for (const MadeKernel& kernel : kernels) {
    Elf64_Shdr section{};
    section.sh_name = names.size();
    section.sh_type = 0x70000000;  // CUDA_INFO
    section.sh_offset = body.size();
    body += MadeInfo(kernel);
    section.sh_size = body.size() - section.sh_offset;
    names += ".nv.info." + kernel.name + '\0';
    sections.push_back(section);
  }
  sections[1].sh_name = 1;
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = body.size();
  sections[1].sh_size = names.size();
  body += names;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = body.size();
  header.e_shnum = sections.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shstrndx = 1;
  for (const Elf64_Shdr& section : sections) Append(body, section);
  std::memcpy(body.data(), &header, sizeof header);
  return body;
}

}  // namespace weir::emulated

#endif
