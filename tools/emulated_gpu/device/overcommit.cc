#include "tools/emulated_gpu/device/overcommit.h"

#include <atomic>

#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/profile.h"

namespace weir::emulated {
namespace {

// No card has that much: whoever asks for it wants it to fail.
constexpr size_t kMostAtOnce = size_t{1} << 42;

std::atomic<uint64_t> granted{0};

struct Refused {
  size_t bytes = 0;
  uint64_t op = 0;
};
thread_local Refused refused;  // the newest

}  // namespace

bool GrantBeyondCard(size_t bytes) {
  if (!Settings().overcommit || bytes > kMostAtOnce) return false;
  const uint64_t op = OpsBegun();
  if (refused.bytes != bytes || refused.op != op) {
    refused = {bytes, op};
    return false;
  }
  granted.fetch_add(1, std::memory_order_relaxed);
  return true;
}

uint64_t GrantedBeyondCard() { return granted; }

}  // namespace weir::emulated
