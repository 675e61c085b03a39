#include "tools/emulated_gpu/device/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace weir::emulated {
namespace {

constexpr char kInfoPrefix[] = ".nv.info.";

// An attribute starts with its format, its number and 16 bits that are the value or the size of what follows.
constexpr uint8_t kFormatSized = 4;
constexpr uint8_t kKernelParameter = 0x17;    // EIATTR_KPARAM_INFO
constexpr uint8_t kKernelParameterV2 = 0x45;  // EIATTR_KPARAM_INFO_V2, where a size needs more than 14 bits
constexpr uint8_t kParameterBytes = 0x19;     // EIATTR_CBANK_PARAM_SIZE, of the whole buffer

struct Bytes {
  const unsigned char* begin;
  size_t size;

  bool Holds(size_t offset, size_t count) const { return offset <= size && count <= size - offset; }
  template <typename T>
  T At(size_t offset) const {
    T value;
    std::memcpy(&value, begin + offset, sizeof value);
    return value;
  }
};

// KPARAM_INFO: index (4 bytes), ordinal (2), offset (2), then the size above bit 18; in V2 the size alone. False when
// the parameters do not fill the buffer that the kernel says it has: the format is not what we think.
bool ReadInfo(Bytes info, Parameters* parameters) {
  size_t end = 0, wanted = 0;
  for (size_t at = 0; info.Holds(at, 4);) {
    const auto format = info.At<uint8_t>(at);
    const auto attribute = info.At<uint8_t>(at + 1);
    const auto value = info.At<uint16_t>(at + 2);
    const size_t size = format == kFormatSized ? value : 0;
    at += 4;
    if (!info.Holds(at, size)) return false;
    if (attribute == kParameterBytes) wanted = value;
    if ((attribute == kKernelParameter || attribute == kKernelParameterV2) && size == 12) {
      const auto ordinal = info.At<uint16_t>(at + 4);
      const auto last = info.At<uint32_t>(at + 8);
      if (parameters->size() <= ordinal) parameters->resize(ordinal + 1);
      Parameter& parameter = (*parameters)[ordinal];
      parameter.offset = info.At<uint16_t>(at + 6);
      parameter.size = static_cast<uint16_t>(attribute == kKernelParameter ? last >> 18 : last);
      end = std::max(end, size_t{parameter.offset} + parameter.size);
    }
    at += size;
  }
  return end == wanted;
}

bool IsElf(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_shentsize == sizeof(Elf64_Shdr);
}

}  // namespace

uint64_t KernelNameHash(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

size_t ElfSize(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (!IsElf(header)) return 0;
  return std::max(header.e_shoff + size_t{header.e_shnum} * sizeof(Elf64_Shdr),
                  header.e_phoff + size_t{header.e_phnum} * sizeof(Elf64_Phdr));
}

bool ReadCubin(const void* image, size_t size, ParameterTable* table) {
  const Bytes all{static_cast<const unsigned char*>(image), size};
  if (!all.Holds(0, sizeof(Elf64_Ehdr))) return false;
  const auto header = all.At<Elf64_Ehdr>(0);
  if (!IsElf(header) || header.e_shstrndx >= header.e_shnum ||
      !all.Holds(header.e_shoff, size_t{header.e_shnum} * sizeof(Elf64_Shdr))) {
    return false;
  }
  const auto section = [&](size_t i) { return all.At<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)); };
  const Elf64_Shdr names = section(header.e_shstrndx);
  if (!all.Holds(names.sh_offset, names.sh_size) || names.sh_size == 0) return false;
  const auto* text = reinterpret_cast<const char*>(all.begin + names.sh_offset);
  if (text[names.sh_size - 1] != '\0') return false;
  ParameterTable found;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr one = section(i);
    if (one.sh_name >= names.sh_size ||
        !all.Holds(one.sh_offset, one.sh_type == SHT_NOBITS ? 0 : one.sh_size))
      return false;
    const std::string_view name = text + one.sh_name;
    if (name.substr(0, sizeof kInfoPrefix - 1) != kInfoPrefix) continue;
    Parameters parameters;
    if (ReadInfo({all.begin + one.sh_offset, one.sh_size}, &parameters))
      found[KernelNameHash(name.substr(sizeof kInfoPrefix - 1))] = std::move(parameters);
  }
  table->merge(found);
  return true;
}

}  // namespace weir::emulated
