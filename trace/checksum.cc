#include "trace/checksum.h"

#include <xxhash.h>

namespace weir::trace {

uint64_t ChecksumOf(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace weir::trace
