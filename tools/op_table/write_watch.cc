#include "tools/op_table/write_watch.h"

#include <c10/core/impl/COW.h>
#include <torch/headeronly/version.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>

#ifndef WEIR_HAS_HOOK
#define WEIR_HAS_HOOK (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13)
#endif

namespace weir::op_table {

using c10::StorageImpl;

std::vector<StorageImpl*>& WriteLog() {
  thread_local std::vector<StorageImpl*> log;
  return log;
}

#if WEIR_HAS_HOOK

namespace {

thread_local std::unordered_set<StorageImpl*> watched;

void NoteWrite(StorageImpl* storage) {
  WriteLog().push_back(storage);
  watched.erase(storage);
}

}  // namespace

const char* WatchedBy() { return "materialize hook"; }

bool Watch(StorageImpl* storage) {
  if (storage->has_materializer() || storage->throw_on_immutable_data_ptr()) return false;
  storage->set_materializer(&NoteWrite);
  return watched.insert(storage).second;
}

void Unwatch(StorageImpl* storage) {
  if (watched.erase(storage) != 0) storage->clear_materializer();
}

bool IsWatched(StorageImpl* storage) { return watched.count(storage) != 0; }

void Settle(const std::function<void(uintptr_t)>&) {}

#else

namespace {

namespace cow = c10::impl::cow;

// Each with the second owner of its block that makes it copy-on-write.
thread_local std::unordered_map<StorageImpl*, c10::intrusive_ptr<StorageImpl> > watched;

uintptr_t AddressOf(StorageImpl* storage) {
  return reinterpret_cast<uintptr_t>(storage->_mutable_data_ptr_no_checks().get());
}

bool IsCow(StorageImpl* storage) { return cow::is_cow_data_ptr(storage->_mutable_data_ptr_no_checks()); }

}  // namespace

const char* WatchedBy() { return "copy-on-write"; }

bool Watch(StorageImpl* storage) {
  if (IsCow(storage) || storage->allocator() == nullptr) return false;
  if (AddressOf(storage) == 0) return false;  // a tensor that is known to be zero has no block
  c10::intrusive_ptr<StorageImpl> other = cow::lazy_clone_storage(*storage);
  return other != nullptr && watched.emplace(storage, std::move(other)).second;
}

void Unwatch(StorageImpl* storage) {
  auto found = watched.find(storage);
  if (found == watched.end()) return;
  watched.erase(found);  // the only owner now, so this copies nothing:
  if (IsCow(storage)) storage->mutable_data();
}

bool IsWatched(StorageImpl* storage) { return watched.count(storage) != 0; }

void Settle(const std::function<void(uintptr_t)>& copied) {
  for (auto entry = watched.begin(); entry != watched.end();) {
    auto [storage, other] = *entry;
    if (IsCow(storage)) {
      ++entry;
      continue;
    }
    WriteLog().push_back(storage);
    entry = watched.erase(entry);
    const uintptr_t copy = AddressOf(storage);
    if (other->nbytes() != storage->nbytes()) continue;  // it was resized: the block is its own
    void* block = other->mutable_data();                 // the only owner now
    // What was computed into the copy is what later calls read.
    storage->allocator()->copy_data(block, reinterpret_cast<void*>(copy), storage->nbytes());
    storage->set_data_ptr_noswap(other->set_data_ptr(c10::DataPtr()));
    copied(copy);
  }
}

#endif

}  // namespace weir::op_table
