// The trace's part of the C ABI: what the plugin tells of ops and phases goes to trace/recorder.h.
#include <cstddef>
#include <vector>

#include "allocator/base/log.h"
#include "allocator/wait_scope.h"
#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/runtime.h"
#include "trace/checksum.h"
#include "trace/recorder.h"

namespace weir {
namespace {

// The thread's own, so that the steady state allocates nothing. Never freed: ops run in thread-local destructors too.
std::span<const trace::Tensor> Tensors(const WeirTraceTensor* tensors, size_t count) {
  static thread_local auto* converted = new std::vector<trace::Tensor>;
  converted->clear();
  for (const WeirTraceTensor& tensor : std::span(tensors, count)) {
    converted->push_back(
        {DeviceAddr::Of(tensor.storage), Bytes(tensor.bytes), static_cast<uint8_t>(tensor.flags)});
  }
  return *converted;
}

uint32_t Name(const char* text) { return trace::NumberOf(text); }

void OpBegin(uint32_t name, uint32_t kind, int64_t sequence, const WeirTraceTensor* arguments, size_t count) {
  if (!trace::On()) return;
  trace::RecordOpBegin(name, static_cast<trace::OpKind>(kind), sequence, Tensors(arguments, count));
}

void OpEnd(uint32_t name, const WeirTraceTensor* results, size_t count) {
  if (trace::On()) trace::RecordOpEnd(name, Tensors(results, count));
}

void Phase(uint32_t phase) { trace::RecordPhase(static_cast<trace::Phase>(phase)); }

// Behind what is queued on `stream`, into pageable memory: slow, and said to be.
absl::Status CopyOut(Device& device, DeviceAddr from, std::span<std::byte> to, Stream stream) {
  DeviceAllocator& allocator = *device.allocator;
  Driver& driver = allocator.driver();
  ScopedContext context(driver, device.index);
  absl::Status status = driver.CopyToHost(to.data(), from, Bytes(to.size()), stream);
  if (!status.ok()) return status;
  absl::StatusOr<Event> done = allocator.events().Record(stream);
  if (!done.ok()) return done.status();
  {
    WaitScope waiting(trace::WaitCause::kCopyOut);
    status = driver.SynchronizeEvent(*done);
  }
  allocator.events().Return(*done);
  return status;
}

void Sum(const WeirTraceTensor* result, uint32_t number, void* stream) {
  Device* device = Runtime::Get().Owner(result->storage);
  if (!trace::On() || device == nullptr || result->data == nullptr || result->bytes == 0) return;
  OpPins& op = OpPins::OfThisThread();
  op.Enter("a checksum of the trace");  // it stays in VRAM as long as this takes
  const TouchRequest request{DeviceAddr::Of(result->storage)};
  if (device->pager->TouchIfResident(std::span(&request, 1), op, Stream::Of(stream))) {
    std::vector<std::byte> bytes(result->bytes);
    const absl::Status status = CopyOut(*device, DeviceAddr::Of(result->data), bytes, Stream::Of(stream));
    if (status.ok()) {
      trace::RecordSum(DeviceAddr::Of(result->storage), trace::ChecksumOf(bytes), number);
    } else {
      Log(LogLevel::kWarn, "WEIR_TRACE_SUMS: ", status.message());
    }
  }
  op.Leave();
}

void Allocated(int32_t device, void* address, uint64_t bytes, void* stream) {
  trace::RecordAllocation(device, DeviceAddr::Of(address), Bytes(bytes), Stream::Of(stream));
}
void Freed(void* address) { trace::RecordFree(DeviceAddr::Of(address)); }
void Refused(int32_t device, uint64_t bytes) { trace::RecordOutOfMemory(device, Bytes(bytes)); }
void Peaks(int32_t device, uint64_t allocated, uint64_t reserved) {
  trace::RecordPeaks(device, Bytes(allocated), Bytes(reserved));
}

}  // namespace
}  // namespace weir

extern "C" const WeirTrace* weir_trace(void) {
  const weir::Options& options = weir::Runtime::Get().options();
  if (options.trace.empty()) return nullptr;
  static const WeirTrace table = {options.trace_sums, options.watch_native, &weir::Name, &weir::OpBegin,
                                  &weir::OpEnd,       &weir::Phase,         &weir::Sum,  &weir::Allocated,
                                  &weir::Freed,       &weir::Refused,       &weir::Peaks};
  return &table;
}
