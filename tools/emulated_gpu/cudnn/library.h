// What the files of this folder share: handles, objects that callers hold by pointer, and the work of a call.
//
// This is a double of cuDNN 9 for kernels `none`: descriptors hold what they were given, sizes are computed, and a call
// that would compute is a launch whose memory is checked and in flight. Where cuDNN chooses a size, workspaces.h does. Any
// thread; a descriptor is used by one thread at a time, as cuDNN demands.
#ifndef WEIR_EMULATED_GPU_CUDNN_LIBRARY_H_
#define WEIR_EMULATED_GPU_CUDNN_LIBRARY_H_

#pragma GCC visibility push(default)
#include <cudnn.h>
#pragma GCC visibility pop

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tools/emulated_gpu/cublas/matrices.h"
#include "tools/emulated_gpu/device/reports.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace weir::emulated {

// The objects of one kind that were made and not destroyed. `kind` names them in reports. Lives as long as the process.
template <typename Object>
class Live {
 public:
  explicit Live(const char* kind) : kind_(kind) {}

  Object* Make() {
    auto made = std::make_shared<Object>();
    Object* pointer = made.get();
    std::lock_guard<std::mutex> lock(mutex_);
    objects_[pointer] = std::move(made);
    return pointer;
  }

  // Null, and reported, when it is not alive.
  std::shared_ptr<Object> Find(const void* pointer, const char* call) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(pointer);
    if (found != objects_.end()) return found->second;
    Report("%s: cuDNN %s %p is not alive", call, kind_, pointer);
    return nullptr;
  }

  cudnnStatus_t Destroy(const void* pointer, const char* call) {
    const std::shared_ptr<Object> object = Find(pointer, call);
    if (object == nullptr) return CUDNN_STATUS_BAD_PARAM;
    std::lock_guard<std::mutex> lock(mutex_);
    objects_.erase(pointer);
    return CUDNN_STATUS_SUCCESS;
  }

 private:
  const char* const kind_;
  mutable std::mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<Object>> objects_;  // guarded by mutex_
};

// Sizes and strides in elements.
struct TensorShape {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int64_t> dims, strides;

  int64_t Elements() const;
  // From the first element to the last, gaps included; 0 for an empty tensor.
  size_t SpanBytes() const;
};

size_t BytesOf(cudnnDataType_t type);  // of one element

// The bytes of the tensor at `base` for Run. A shape of more than three strides is only in flight.
Matrix TensorAt(const void* base, const TensorShape& shape, Use use);
// `bytes` bytes in a row.
Matrix BytesAt(const void* base, size_t bytes, Use use);

// The routine `call`, which uses this memory on the stream of `handle`. BAD_PARAM for a dead handle, NOT_SUPPORTED with
// kernels cpu, EXECUTION_FAILED when memory is not there (reported by name).
cudnnStatus_t Run(const char* call, cudnnHandle_t handle, const std::vector<Matrix>& memory);

}  // namespace weir::emulated

#endif
