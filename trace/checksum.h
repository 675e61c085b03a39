// The checksum of WEIR_TRACE_SUMS: XXH3, 64 bits, seed 0. Any thread.
#ifndef WEIR_TRACE_CHECKSUM_H_
#define WEIR_TRACE_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::trace {

uint64_t ChecksumOf(std::span<const std::byte> bytes);

}  // namespace weir::trace

#endif  // WEIR_TRACE_CHECKSUM_H_
