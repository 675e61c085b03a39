// What the pager takes on the host to bring a tensor back and to send another one away for it, with a driver that does
// nothing: its calls have costs of their own.
#ifndef WEIR_TOOLS_BENCH_HOST_MOVES_H_
#define WEIR_TOOLS_BENCH_HOST_MOVES_H_

#include <cstdint>

#include "tools/bench_host/side_by_side.h"

namespace weir::bench {

// Pairs of moves with so many tensors in VRAM, under a policy that looks at all of them. One thread.
Work PairsOfMoves(const char* name, uint64_t tensors);

}  // namespace weir::bench

#endif  // WEIR_TOOLS_BENCH_HOST_MOVES_H_
