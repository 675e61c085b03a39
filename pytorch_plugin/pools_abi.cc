// The part of the C ABI that is about pools.
#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/core_errors.h"
#include "pytorch_plugin/runtime.h"
#include "trace/recorder.h"

using namespace weir;  // NOLINT: this file is the boundary of the namespace

extern "C" {

uint32_t weir_make_pool(int32_t index, WeirError* error) {
  absl::Status status;
  Device* device = Runtime::Get().GetDevice(index, &status);
  if (device != nullptr) return device->allocator->MakePool().value();
  Fail(error, status);
  return 0;
}

void weir_keep_blocks_apart(int32_t index, uint32_t pool) {
  if (Device* device = Runtime::Get().Find(index)) device->allocator->KeepBlocksApart(PoolId(pool));
}

void weir_end_pool(int32_t index, uint32_t pool) {
  if (Device* device = Runtime::Get().Find(index)) device->allocator->EndPool(PoolId(pool));
}

uint32_t weir_pool_of(const void* address) {
  Device* device = Runtime::Get().Owner(address);
  return device == nullptr ? 0 : device->allocator->PoolOf(DeviceAddr::Of(address)).value();
}

int32_t weir_take_outside(int32_t index, uint64_t bytes, void* stream, WeirError* error) {
  absl::Status status;
  Device* device = Runtime::Get().GetDevice(index, &status);
  if (device == nullptr) return Fail(error, status);
  status = device->allocator->TakeOutside(Bytes(bytes), Stream::Of(stream), OpPins::OfThisThread());
  return status.ok() ? WEIR_OK : FailOn(*device, Bytes(bytes), status, error);
}

void weir_give_outside(int32_t index, uint64_t bytes) {
  if (Device* device = Runtime::Get().Find(index)) device->allocator->GiveOutside(Bytes(bytes));
}

void weir_count_outside(int32_t index, void* address, uint64_t bytes, uint64_t requested, void* stream,
                        int32_t live) {
  Device* device = Runtime::Get().Find(index);
  if (device == nullptr) return;
  device->allocator->CountOutsideBlock(Bytes(bytes), Bytes(requested), live != 0);
  if (live != 0) {
    trace::RecordAllocation(index, DeviceAddr::Of(address), Bytes(requested), Stream::Of(stream));
  } else {
    trace::RecordFree(DeviceAddr::Of(address));
  }
}

}  // extern "C"
