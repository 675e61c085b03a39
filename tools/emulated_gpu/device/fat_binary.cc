#include "tools/emulated_gpu/device/fat_binary.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace weir::emulated {
namespace {

// CUDA toolkit, fatbinary_section.h.
struct Wrapper {
  uint32_t magic, version;
  const void* data;
  const void* names;
};

struct ContainerHeader {
  uint32_t magic;
  uint16_t version, header_size;
  uint64_t size;  // of the entries behind the header
};

// One image. The layout is not documented; seen in the wheels of torch with CUDA 12 and 13.
struct EntryHeader {
  uint16_t kind, version;
  uint32_t header_size;
  uint64_t stored_size;  // padded
  uint32_t compressed_size, unused_0;
  uint16_t minor, major;
  uint32_t architecture;
  uint32_t unused_1[2];
  uint64_t flags;
  uint64_t unused_2;
  uint64_t size;  // uncompressed; 0 if it is stored as it is
};

constexpr uint16_t kKindElf = 2;
constexpr uint32_t kZstdMagic = 0xfd2fb528;

template <typename T>
T Read(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

// libzstd, which Debian's package manager needs and every installation has; taken by name so that the emulator links
// nothing. Declared here as in zstd.h.
using ZstdDecompress = size_t (*)(void* to, size_t room, const void* from, size_t size);
ZstdDecompress Zstd() {
  static const auto found = [] {
    void* library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<ZstdDecompress>(library == nullptr ? nullptr : dlsym(library, "ZSTD_decompress"));
  }();
  return found;
}

struct Image {
  const unsigned char* begin;
  EntryHeader header;
};

std::string ReadEntry(const Image& image, ParameterTable* table) {
  if (image.header.size == 0) {
    return ReadCubin(image.begin, image.header.stored_size, table) ? "" : "its image is damaged";
  }
  if (Read<uint32_t>(image.begin) != kZstdMagic) return "its image is compressed, and not with zstd";
  if (Zstd() == nullptr) return "its image is compressed and libzstd.so.1 cannot be loaded";
  const std::unique_ptr<unsigned char[]> room(new unsigned char[image.header.size]);
  const size_t size = Zstd()(room.get(), image.header.size, image.begin, image.header.compressed_size);
  if (size != image.header.size || !ReadCubin(room.get(), size, table)) return "its image is damaged";
  return "";
}

std::vector<Image> ElfImages(const unsigned char* container) {
  const auto outer = Read<ContainerHeader>(container);
  const unsigned char* at = container + outer.header_size;
  const unsigned char* end = at + outer.size;
  std::vector<Image> images;
  while (end - at >= static_cast<ptrdiff_t>(sizeof(EntryHeader))) {
    const auto header = Read<EntryHeader>(at);
    if (header.header_size < sizeof header) break;
    if (header.kind == kKindElf) images.push_back({at + header.header_size, header});
    at += header.header_size + header.stored_size;
  }
  std::sort(images.begin(), images.end(),
            [](const Image& a, const Image& b) { return a.header.size < b.header.size; });
  return images;
}

}  // namespace

std::string ReadKernelImage(const void* image, const char* wanted, ParameterTable* table) {
  if (Read<uint32_t>(image) == kFatBinaryWrapper) image = Read<Wrapper>(image).data;
  if (Read<uint32_t>(image) != kFatBinaryContainer) {
    const size_t size = ElfSize(image);
    if (size == 0) return "its image is no cubin";
    return ReadCubin(image, size, table) ? "" : "its image is damaged";
  }
  const std::vector<Image> images = ElfImages(static_cast<const unsigned char*>(image));
  std::string why = "its fat binary has no cubin";
  for (const Image& one : images) {
    why = ReadEntry(one, table);
    if (why.empty() && (wanted == nullptr || table->count(KernelNameHash(wanted)) != 0)) break;
  }
  return why;
}

}  // namespace weir::emulated
