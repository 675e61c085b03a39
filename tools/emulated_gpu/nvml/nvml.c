// Start and end, the system, and handles of devices.
#define _GNU_SOURCE
#include "nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { kMostCards = 16 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int (*cards)(void);
static int (*read_card)(int, struct WeirEmulatedCard*);
static int (*read_processes)(int, struct WeirEmulatedProcess*, int);
static atomic_int users;
static char handles[kMostCards];  // a handle is an address in here

static void find_emulator(void) {
  Dl_info self;
  if (dladdr((void*)&weir_card, &self) == 0 || self.dli_fname == NULL) return;
  const char* slash = strrchr(self.dli_fname, '/');
  const int folder = slash == NULL ? 0 : (int)(slash - self.dli_fname + 1);
  char path[4096];
  snprintf(path, sizeof path, "%.*slibcuda.so.1", folder, self.dli_fname);
  void* emulator = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (emulator == NULL) return;
  *(void**)&cards = dlsym(emulator, "weir_emulated_cards");
  *(void**)&read_card = dlsym(emulator, "weir_emulated_card");
  *(void**)&read_processes = dlsym(emulator, "weir_emulated_processes");
}

static int count(void) {
  pthread_once(&once, find_emulator);
  return cards == NULL || read_card == NULL || read_processes == NULL ? 0 : cards();
}

int weir_initialized(void) { return atomic_load(&users) > 0; }

int weir_card_index(const void* handle) {
  const ptrdiff_t index = (const char*)handle - handles;
  return index >= 0 && index < kMostCards ? (int)index : -1;
}

int weir_card(const void* handle, struct WeirEmulatedCard* card) {
  if (!weir_initialized()) return kUninitialized;
  const int index = weir_card_index(handle);
  return index >= 0 && count() > 0 && read_card(index, card) ? kSuccess : kInvalidArgument;
}

int weir_processes(const void* handle, struct WeirEmulatedProcess* list, int room) {
  return read_processes(weir_card_index(handle), list, room);
}

int weir_copy_text(char* to, unsigned room, const char* text) {
  if (to == NULL) return kInvalidArgument;
  if (strlen(text) >= room) return kInsufficientSize;
  strcpy(to, text);
  return kSuccess;
}

void weir_uuid_text(const struct WeirEmulatedCard* card, char text[48]) {
  int at = sprintf(text, "GPU-");
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text[at++] = '-';
    at += sprintf(text + at, "%02x", card->uuid[i]);
  }
}

EXPORT int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  if (count() == 0) return kDriverNotLoaded;
  atomic_fetch_add(&users, 1);
  return kSuccess;
}
EXPORT int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
EXPORT int nvmlInit(void) { return nvmlInitWithFlags(0); }

EXPORT int nvmlShutdown(void) {
  if (!weir_initialized()) return kUninitialized;
  atomic_fetch_sub(&users, 1);
  return kSuccess;
}

EXPORT const char* nvmlErrorString(int status) {
  switch (status) {
    case kSuccess:
      return "Success";
    case kUninitialized:
      return "Uninitialized";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNotFound:
      return "Not Found";
    case kInsufficientSize:
      return "Insufficient Size";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    case kFunctionNotFound:
      return "Function Not Found";
    case kVersionMismatch:
      return "Argument version mismatch";
    default:
      return "Unknown Error";
  }
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (version == NULL) return kInvalidArgument;
  *version = 13020;  // as cuDriverGetVersion
  return kSuccess;
}
EXPORT int nvmlSystemGetCudaDriverVersion(int* version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

// The driver branch of CUDA 13.2; monitors read the number before the point.
EXPORT int nvmlSystemGetDriverVersion(char* version, unsigned room) {
  return weir_initialized() ? weir_copy_text(version, room, "595.00") : kUninitialized;
}
EXPORT int nvmlSystemGetNVMLVersion(char* version, unsigned room) {
  return weir_initialized() ? weir_copy_text(version, room, "13.595.00") : kUninitialized;
}

EXPORT int nvmlSystemGetProcessName(unsigned pid, char* name, unsigned room) {
  if (!weir_initialized()) return kUninitialized;
  if (name == NULL || room == 0) return kInvalidArgument;
  char path[32];
  snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
  FILE* file = fopen(path, "re");
  if (file == NULL) return kNotFound;
  name[fread(name, 1, room - 1, file)] = '\0';  // the words end with zeros: the name is the first
  fclose(file);
  return kSuccess;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned* number) {
  if (!weir_initialized()) return kUninitialized;
  if (number == NULL) return kInvalidArgument;
  *number = (unsigned)count();
  return kSuccess;
}
EXPORT int nvmlDeviceGetCount(unsigned* number) { return nvmlDeviceGetCount_v2(number); }

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (!weir_initialized()) return kUninitialized;
  if (handle == NULL || index >= (unsigned)count()) return kInvalidArgument;
  *handle = &handles[index];
  return kSuccess;
}
EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, void** handle) {
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** handle) {
  if (!weir_initialized()) return kUninitialized;
  unsigned domain = 0, bus = 0, device = 0;
  if (address == NULL || handle == NULL) return kInvalidArgument;
  if (sscanf(address, "%x:%x:%x", &domain, &bus, &device) != 3) return kInvalidArgument;
  struct WeirEmulatedCard card;
  for (int i = 0; i < count(); ++i) {
    if (!read_card(i, &card) || domain != 0 || card.bus != bus || device != 0) continue;
    *handle = &handles[i];
    return kSuccess;
  }
  return kNotFound;
}
EXPORT int nvmlDeviceGetHandleByPciBusId(const char* address, void** handle) {
  return nvmlDeviceGetHandleByPciBusId_v2(address, handle);
}

EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  if (!weir_initialized()) return kUninitialized;
  if (uuid == NULL || handle == NULL) return kInvalidArgument;
  struct WeirEmulatedCard card;
  char text[48];
  for (int i = 0; i < count(); ++i) {
    if (!read_card(i, &card)) continue;
    weir_uuid_text(&card, text);
    if (strcmp(text, uuid) != 0) continue;
    *handle = &handles[i];
    return kSuccess;
  }
  return kNotFound;
}
