// Sees who asks for a storage's address by the mutable accessor. Since torch 2.13 the materialize hook tells it at once.
// Before, the storage is made copy-on-write: it stops being so when it is written, which Settle() finds out.
//
// All state is per thread. Storages are not owned: they must stay alive while they are watched.
#ifndef WEIR_TOOLS_OP_TABLE_WRITE_WATCH_H_
#define WEIR_TOOLS_OP_TABLE_WRITE_WATCH_H_

#include <c10/core/StorageImpl.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace weir::op_table {

// "materialize hook" or "copy-on-write".
const char* WatchedBy();

// False if it is watched already, or cannot be.
bool Watch(c10::StorageImpl* storage);
void Unwatch(c10::StorageImpl* storage);
bool IsWatched(c10::StorageImpl* storage);

// Puts what was written since the last call into the log. `copied` is told the address of each block that torch
// allocated only because the storage was watched; it has been given back, and the storage has its own block again.
void Settle(const std::function<void(uintptr_t)>& copied);

// Storages that were written, in the order of Settle(); each is no longer watched. The caller clears it.
std::vector<c10::StorageImpl*>& WriteLog();

}  // namespace weir::op_table

#endif  // WEIR_TOOLS_OP_TABLE_WRITE_WATCH_H_
