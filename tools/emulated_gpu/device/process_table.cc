#include "tools/emulated_gpu/device/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/emulated_gpu/device/reports.h"

namespace weir::emulated {
namespace {

constexpr int kMostProcesses = 256;
constexpr size_t kTableBytes = kMostProcesses * sizeof(ProcessSlot);
ProcessSlot alone;

// When the process `pid` started, 0 if it is gone or only waits to be collected. From proc(5): the 22nd field of stat,
// counted after the name, which may hold anything; the 3rd is the state.
uint64_t StartOf(int pid) {
  char path[32], text[1024];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return 0;
  text[length] = '\0';
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] == '\0' || at[2] == 'Z' || at[2] == 'X') return 0;
  for (int field = 2; field < 22 && at != nullptr; ++field) at = std::strchr(at + 1, ' ');
  return at == nullptr ? 0 : std::strtoull(at + 1, nullptr, 10);
}

constexpr char kFolder[] = "/dev/shm", kPrefix[] = "weir-emulated-";

bool AnyAlive(const ProcessSlot* slots) {
  for (int i = 0; i < kMostProcesses; ++i) {
    if (slots[i].pid != 0 && StartOf(slots[i].pid) == slots[i].start) return true;
  }
  return false;
}

// This user's file, which nobody else can read; in a folder that others write to, only such a one is used.
bool IsOwn(int file, struct stat* found) {
  return fstat(file, found) == 0 && S_ISREG(found->st_mode) && found->st_uid == geteuid() &&
         (found->st_mode & 077) == 0;
}

ProcessSlot* MapSlots(int file) {
  void* slots = mmap(nullptr, kTableBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return slots == MAP_FAILED ? nullptr : static_cast<ProcessSlot*>(slots);
}

// Tables that no living process has.
void RemoveLeftOver() {
  DIR* folder = opendir(kFolder);
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    if (std::strncmp(entry->d_name, kPrefix, sizeof kPrefix - 1) != 0) continue;
    const int file = openat(dirfd(folder), entry->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) continue;
    struct stat found;
    const bool ours = IsOwn(file, &found) && found.st_size == static_cast<off_t>(kTableBytes) &&
                      flock(file, LOCK_EX | LOCK_NB) == 0;
    ProcessSlot* slots = ours ? MapSlots(file) : nullptr;
    if (slots != nullptr) {
      if (!AnyAlive(slots)) unlinkat(dirfd(folder), entry->d_name, 0);
      munmap(slots, kTableBytes);
    }
    close(file);  // and with it the lock
  }
  closedir(folder);
}

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

ProcessTable::ProcessTable() : slots_(&alone) {
  const char* name = std::getenv("WEIR_EMULATED_SHARED");
  if (name == nullptr || *name == '\0') return;
  path_ = std::string(kFolder) + "/" + kPrefix + name;
  if (IsName(name) && Open()) return;
  Note("WEIR_EMULATED_SHARED=%s cannot be used: this process does not see what others use of the cards",
       name);
}

// Leaves what there was before in place if it fails.
bool ProcessTable::Open() {
  const int file =
      open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, S_IRUSR | S_IWUSR);
  if (file < 0) return false;
  flock(file, LOCK_EX);
  struct stat found;
  bool fits = IsOwn(file, &found);
  const bool is_new = fits && found.st_size == 0;
  if (is_new) fits = ftruncate(file, kTableBytes) == 0 && fstat(file, &found) == 0;
  fits = fits && found.st_size == static_cast<off_t>(kTableBytes);
  if (is_new) RemoveLeftOver();  // but for this one, which is locked
  flock(file, LOCK_UN);
  ProcessSlot* slots = fits ? MapSlots(file) : nullptr;
  if (slots == nullptr) {
    close(file);
    return false;
  }
  if (file_ >= 0) close(file_);  // other threads may read its slots yet: they stay mapped
  slots_ = slots;
  count_ = kMostProcesses;
  file_ = file;
  return true;
}

void ProcessTable::Lock() {
  if (file_ >= 0) flock(file_, LOCK_EX);
}
void ProcessTable::Unlock() {
  if (file_ >= 0) flock(file_, LOCK_UN);
}

ProcessSlot* ProcessTable::TakeSlotLocked() {
  // The last process may have removed the file since it was opened.
  struct stat found;
  while (file_ >= 0 && fstat(file_, &found) == 0 && found.st_nlink == 0) {
    if (!Open()) break;
    Lock();
  }
  const int pid = getpid();
  DropDeadLocked();
  ProcessSlot* taken = nullptr;
  for (ProcessSlot& slot : *this) {
    if (slot.pid == pid) taken = &slot;
    if (slot.pid == 0 && taken == nullptr) taken = &slot;
  }
  if (taken == nullptr) {
    Note("%d processes share the emulated cards already: this one is not counted", kMostProcesses);
    return &alone;
  }
  taken->contexts = 0;
  for (int device = 0; device < kMostDevices; ++device) {
    taken->used[device] = 0;
    taken->busy[device] = 0;
  }
  taken->now = 0;
  taken->pinned = 0;
  taken->start = StartOf(pid);
  taken->pid = pid;
  return taken;
}

ProcessSlot* ProcessTable::LeaveLocked(ProcessSlot* slot) {
  if (slot == &alone) return slot;
  for (int device = 0; device < kMostDevices; ++device) alone.used[device] = slot->used[device].load();
  alone.pinned = slot->pinned.load();
  slot->pid = 0;
  if (!AnyAlive(slots_)) unlink(path_.c_str());
  return &alone;
}

void ProcessTable::DropDeadLocked() {
  if (file_ < 0) return;
  for (ProcessSlot& slot : *this) {
    if (slot.pid != 0 && slot.pid != getpid() && StartOf(slot.pid) != slot.start) slot.pid = 0;
  }
}

ProcessTable& Table() {
  static auto* table = new ProcessTable;
  return *table;
}

}  // namespace weir::emulated
