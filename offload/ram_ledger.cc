#include "offload/ram_ledger.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weir {

// All zeros: a new file. Lock 0 of the file is held to change anything, lock 1 + i by the process of slot i.
struct RamLedger::Table {
  static constexpr int kSlots = 510;
  struct Slot {
    std::atomic<uint32_t> kind;
    std::atomic<uint64_t> pinned;
  };
  Slot slots[kSlots];
};

namespace {

bool Lock(int file, int command, short type, off_t byte, off_t count = 1) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = count;
  int result;
  do {
    result = fcntl(file, command, &lock);
  } while (result != 0 && errno == EINTR);
  return result == 0 && (command != F_GETLK || lock.l_type == F_UNLCK);
}

constexpr off_t kWholeFile = 0;  // a lock of no length reaches to the end

bool OthersHold(int file, off_t byte, off_t count = 1) { return !Lock(file, F_GETLK, F_WRLCK, byte, count); }

absl::Status Refused(const std::string& path, const char* what) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", what));
}

}  // namespace

class RamLedger::Guard {
 public:
  explicit Guard(int file) : file_(file) { Lock(file_, F_SETLKW, F_WRLCK, 0); }
  ~Guard() { Lock(file_, F_SETLK, F_UNLCK, 0); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  const int file_;
};

RamLedger::RamLedger(int file, std::string path, Table* table, Kind kind)
    : file_(file), path_(std::move(path)), table_(table), kind_(kind), owner_(getpid()) {}

absl::StatusOr<std::unique_ptr<RamLedger>> RamLedger::Open(Kind kind, const std::string& scope,
                                                           const std::string& folder) {
  const std::string prefix = absl::StrCat("weir-ram-", geteuid());
  const std::string path = absl::StrCat(folder, "/", prefix, scope.empty() ? "" : "-", scope);
  RemoveLeftOver(folder, prefix);
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return Refused(path, std::strerror(errno));
    struct stat status {};
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) {
      close(file);
      return Refused(path, "is not a file of this user");
    }
    void* table = MAP_FAILED;
    if (ftruncate(file, sizeof(Table)) == 0)
      table = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (table == MAP_FAILED) {
      close(file);
      return Refused(path, "cannot be mapped");
    }
    std::unique_ptr<RamLedger> ledger(new RamLedger(file, path, static_cast<Table*>(table), kind));
    const Guard guard(file);
    if (fstat(file, &status) != 0 || status.st_nlink == 0) continue;  // the last one left meanwhile
    if (!ledger->TakeSlot()) return Refused(path, "has no place left");
    return ledger;
  }
  return Refused(path, "comes and goes");
}

RamLedger::~RamLedger() {
  Leave();
  munmap(table_, sizeof(Table));
  close(file_);  // drops the lock on the slot
}

bool RamLedger::TakeSlot() {
  for (int i = 0; i < Table::kSlots; ++i) {
    if (!Lock(file_, F_SETLK, F_WRLCK, 1 + i)) continue;
    slot_ = i;
    table_->slots[i].pinned.store(0);
    table_->slots[i].kind.store(static_cast<uint32_t>(kind_));
    return true;
  }
  return false;
}

RamLedger::Sum RamLedger::SumLocked() {
  Sum sum;
  for (int i = 0; i < Table::kSlots; ++i) {
    Table::Slot& slot = table_->slots[i];
    if (slot.kind.load() == static_cast<uint32_t>(Kind::kUnused)) continue;
    if (i != slot_ && !OthersHold(file_, 1 + i)) {  // killed
      slot.kind.store(static_cast<uint32_t>(Kind::kUnused));
      continue;
    }
    if (slot.kind.load() != static_cast<uint32_t>(kind_)) continue;
    sum.pinned += Bytes(slot.pinned.load());
    ++sum.processes;
  }
  return sum;
}

RamLedger::Sum RamLedger::Total() {
  const Guard guard(file_);
  return SumLocked();
}

bool RamLedger::Add(Bytes more, Bytes limit) {
  if (slot_ < 0 || !IsOurs()) return false;
  const Guard guard(file_);
  if (SumLocked().pinned + more > limit) return false;
  table_->slots[slot_].pinned.fetch_add(more.count());
  return true;
}

bool RamLedger::IsOurs() const { return getpid() == owner_; }

void RamLedger::Remove(Bytes less) {
  if (slot_ >= 0 && IsOurs()) table_->slots[slot_].pinned.fetch_sub(less.count());
}

void RamLedger::Leave() {
  if (slot_ < 0 || !IsOurs()) return;
  const Guard guard(file_);
  table_->slots[slot_].kind.store(static_cast<uint32_t>(Kind::kUnused));
  Lock(file_, F_SETLK, F_UNLCK, 1 + slot_);
  slot_ = -1;
  if (!OthersHold(file_, 1, kWholeFile)) unlink(path_.c_str());
}

void RamLedger::RemoveLeftOver(const std::string& folder, const std::string& prefix) {
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = readdir(entries)) {
    const absl::string_view name = entry->d_name;
    if (!absl::StartsWith(name, prefix) || (name.size() > prefix.size() && name[prefix.size()] != '-'))
      continue;
    const std::string path = absl::StrCat(folder, "/", name);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    // Whoever has opened it and not locked it yet will find that it is gone, and make another.
    if (!OthersHold(file, 0, kWholeFile)) unlink(path.c_str());
    close(file);
  }
  closedir(entries);
}

}  // namespace weir
