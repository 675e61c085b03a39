// Lends CUDA tensors to CPU kernels as CPU tensors over the same bytes, and turns the results into CUDA
// tensors. One Lending per op call, on the thread that runs the op.
//
// Bytes are taken with mutable_data_ptr() where the op writes and const_data_ptr() elsewhere, so that what is
// armed on a storage (a throwing flag, a materialize hook) acts; such exceptions pass through.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_LENDING_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_LENDING_H_

#include <ATen/core/Tensor.h>

#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/emulated_gpu/torch_kernels/tensor_bytes.h"

namespace weir::emulated {

class Lending {
 public:
  // `op` names the work in reports and outlives the process. For the clock: `moves` is how often new results are moved.
  explicit Lending(const char* op, double moves = 1) : op_(op), moves_(moves) {}

  // For an op whose work was announced already, and whose storages were asked for their pointers: acts on no flag or hook.
  static Lending Announced(const char* op) {
    Lending lending(op);
    lending.announced_ = true;
    return lending;
  }

  // A CPU tensor over the bytes of `tensor`; anything that is not a CUDA tensor comes back as it is.
  at::Tensor Lend(const at::Tensor& tensor, bool written);

  // Before the kernel, when all is lent: tells the emulator what it reads and writes on the current stream, and returns
  // when what it comes after has run. `work` is what the op does with its arguments.
  void RunsNow(const WeirEmulatedWork* work = nullptr);

  // What was queued on the current stream has run.
  static void Settle();

  // After the kernel: resized or restrided arguments get their new shape and bytes.
  void TakeBackArguments();

  // A result: the argument itself, a view of an argument's storage, or new CUDA memory with the same strides.
  at::Tensor TakeResult(const at::Tensor& result);

  // Before TakeResult: results that share one new storage keep sharing it.
  void NoteResult(const at::Tensor& result);

 private:
  struct LentStorage {
    c10::Storage original, lent;
    void* bytes;
    size_t size;
  };
  struct NewStorage {
    c10::StorageImpl* host;
    int uses;
    c10::Storage device;
  };

  at::Tensor LendSparse(const at::Tensor& tensor, bool written);
  at::Tensor LendCompressed(const at::Tensor& tensor, bool written);
  LentStorage& LendStorage(const at::Tensor& tensor, bool written);
  void TakeBackStorage(LentStorage& storage);
  void TakeBackSparse(const at::Tensor& original, const at::Tensor& lent);
  const at::Tensor* OriginalOf(const at::Tensor& lent) const;
  at::Tensor TakeNew(const at::Tensor& result);
  at::Tensor TakeSparse(const at::Tensor& result);
  at::Tensor ViewOf(const c10::Storage& storage, const at::Tensor& like);

  // This work runs on the current stream now; throws where the stream captures.
  void Run(const WeirEmulatedAccess* accesses, size_t count, const WeirEmulatedWork* work);

  // The bytes of a result are about to be written on the current stream.
  void WritesNow(const c10::Storage& storage, size_t size);

  const char* const op_;
  const double moves_;
  bool announced_ = false;
  Accesses accesses_;
  // List ops have thousands of arguments: each is found by address. A deque keeps references valid.
  std::deque<LentStorage> storages_;
  std::deque<std::pair<at::Tensor, at::Tensor>> tensors_;  // original, lent
  std::unordered_map<const void*, size_t> storage_by_original_, storage_by_lent_, tensor_by_original_,
      tensor_by_lent_;
  std::vector<at::Tensor> host_arguments_;  // CPU tensors that were given as they are
  std::vector<NewStorage> new_storages_;
};

}  // namespace weir::emulated

#endif
