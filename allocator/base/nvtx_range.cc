#include "allocator/base/nvtx_range.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "nvtx3/nvToolsExt.h"
#include "nvtx3/nvToolsExtCuda.h"

namespace weir {
namespace {

struct Domain {
  nvtxDomainHandle_t handle = nullptr;
  std::array<nvtxStringHandle_t, 4> names{};  // by RangeKind
};

// Written once by StartNvtx before nvtx_attached becomes true (release), read only after (acquire through the
// flag).
Domain domain;

}  // namespace

void StartNvtx(NvtxMode mode) {
  internal::nvtx_attached.store(false, std::memory_order_release);
  if (mode == NvtxMode::kOff) return;
  if (domain.handle == nullptr) {
    // NVTX loads the tool that NVTX_INJECTION64_PATH names at this first call; without one the handle is
    // null.
    domain.handle = nvtxDomainCreateA("weir");
    if (domain.handle == nullptr) return;
    constexpr std::array<const char*, 4> kNames = {"evict", "fetch", "wait", "oom"};
    for (size_t i = 0; i < kNames.size(); ++i)
      domain.names[i] = nvtxDomainRegisterStringA(domain.handle, kNames[i]);
  }
  internal::nvtx_attached.store(true, std::memory_order_release);
}

void NameThisThread(const char* name) {
  if (NvtxAttached()) nvtxNameOsThreadA(static_cast<uint32_t>(syscall(SYS_gettid)), name);
}

void NameStream(Stream stream, const char* name) {
  if (NvtxAttached()) nvtxNameCuStreamA(reinterpret_cast<CUstream>(stream.handle()), name);
}

namespace internal {

void PushNvtxRange(RangeKind kind, Bytes bytes) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = domain.names[static_cast<size_t>(kind)];
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = bytes.count();
  nvtxDomainRangePushEx(domain.handle, &attributes);
}

void PopNvtxRange() { nvtxDomainRangePop(domain.handle); }

}  // namespace internal
}  // namespace weir
