// What PYTORCH_ALLOC_CONF (PYTORCH_CUDA_ALLOC_CONF in older jobs) asks of the allocator that Weir replaces. Torch itself parses
// the text and refuses what is malformed; here each key is either followed or told.
#ifndef WEIR_ALLOCATOR_BASE_TORCH_CONF_H_
#define WEIR_ALLOCATOR_BASE_TORCH_CONF_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir {

struct TorchConf {
  double fraction = 1.0;                    // per_process_memory_fraction: of the card's total
  std::vector<std::string> without_effect;  // keys that mean nothing to Weir's blocks, as they stand there
};

// Keys of the backend and of pinned host memory, which torch follows, and expandable_segments, which is what Weir's extents are,
// are not listed.
TorchConf ReadTorchConf(absl::string_view text);

// The variable that torch would read, first that is set; empty if none is.
std::string TorchConfText();

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BASE_TORCH_CONF_H_
