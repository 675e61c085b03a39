// What a device is and how busy: from the profile and the emulated device's accounting.
#include <stdio.h>
#include <string.h>

#include "nvml.h"

// The card of `handle`, or the call's answer.
#define CARD(result)                                          \
  struct WeirEmulatedCard card;                               \
  const int known = weir_card(handle, &card);                 \
  if (known != kSuccess) return known;                        \
  if ((result) == NULL) return kInvalidArgument

EXPORT int nvmlDeviceGetIndex(void* handle, unsigned* index) {
  CARD(index);
  *index = (unsigned)weir_card_index(handle);
  return kSuccess;
}
EXPORT int nvmlDeviceGetMinorNumber(void* handle, unsigned* number) { return nvmlDeviceGetIndex(handle, number); }

EXPORT int nvmlDeviceGetName(void* handle, char* name, unsigned room) {
  CARD(name);
  return weir_copy_text(name, room, card.name);
}

EXPORT int nvmlDeviceGetUUID(void* handle, char* uuid, unsigned room) {
  CARD(uuid);
  char text[48];
  weir_uuid_text(&card, text);
  return weir_copy_text(uuid, room, text);
}

EXPORT int nvmlDeviceGetBrand(void* handle, unsigned* brand) {
  CARD(brand);
  *brand = strstr(card.name, "GeForce") != NULL ? 5 : 14;  // NVML_BRAND_GEFORCE, NVML_BRAND_NVIDIA
  return kSuccess;
}

// NVML_DEVICE_ARCH_AMPERE, _ADA, _HOPPER, _BLACKWELL.
EXPORT int nvmlDeviceGetArchitecture(void* handle, unsigned* architecture) {
  CARD(architecture);
  const int capability = card.major * 10 + card.minor;
  *architecture = capability >= 100 ? 10 : capability >= 90 ? 9 : capability == 89 ? 8 : 7;
  return kSuccess;
}

struct pci_info {  // nvmlPciInfo_t
  char legacy_address[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char address[32];
};

EXPORT int nvmlDeviceGetPciInfo_v3(void* handle, struct pci_info* pci) {
  CARD(pci);
  memset(pci, 0, sizeof *pci);
  pci->bus = card.bus;
  snprintf(pci->legacy_address, sizeof pci->legacy_address, "0000:%02X:00.0", card.bus);
  snprintf(pci->address, sizeof pci->address, "00000000:%02X:00.0", card.bus);
  return kSuccess;
}
EXPORT int nvmlDeviceGetPciInfo_v2(void* handle, struct pci_info* pci) { return nvmlDeviceGetPciInfo_v3(handle, pci); }
EXPORT int nvmlDeviceGetPciInfo(void* handle, struct pci_info* pci) { return nvmlDeviceGetPciInfo_v3(handle, pci); }

struct memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};

EXPORT int nvmlDeviceGetMemoryInfo(void* handle, struct memory* memory) {
  CARD(memory);
  *memory = (struct memory){card.total, card.total - card.used, card.used};
  return kSuccess;
}

struct memory_v2 {  // nvmlMemory_v2_t
  unsigned version;
  unsigned long long total, reserved, free, used;
};

EXPORT int nvmlDeviceGetMemoryInfo_v2(void* handle, struct memory_v2* memory) {
  CARD(memory);
  if (memory->version != (2u << 24 | sizeof *memory)) return kVersionMismatch;
  *memory = (struct memory_v2){memory->version, card.total, 0, card.total - card.used, card.used};
  return kSuccess;
}

struct utilization {  // nvmlUtilization_t
  unsigned gpu, memory;
};

// Memory counts as busy while kernels run: the clock does not know when they read and write.
EXPORT int nvmlDeviceGetUtilizationRates(void* handle, struct utilization* utilization) {
  CARD(utilization);
  *utilization = (struct utilization){card.busy_percent, card.busy_percent};
  return kSuccess;
}

// NVML_CLOCK_GRAPHICS, _SM, _MEM, _VIDEO. They are always at their highest.
EXPORT int nvmlDeviceGetMaxClockInfo(void* handle, unsigned type, unsigned* megahertz) {
  CARD(megahertz);
  if (type > 3) return kInvalidArgument;
  if (type == 3) return kNotSupported;
  *megahertz = type == 2 ? card.memory_clock_mhz : card.clock_mhz;
  return kSuccess;
}
EXPORT int nvmlDeviceGetClockInfo(void* handle, unsigned type, unsigned* megahertz) {
  return nvmlDeviceGetMaxClockInfo(handle, type, megahertz);
}
EXPORT int nvmlDeviceGetApplicationsClock(void* handle, unsigned type, unsigned* megahertz) {
  return nvmlDeviceGetMaxClockInfo(handle, type, megahertz);
}
EXPORT int nvmlDeviceGetClock(void* handle, unsigned type, unsigned id, unsigned* megahertz) {
  if (id > 3) return kInvalidArgument;
  return nvmlDeviceGetMaxClockInfo(handle, type, megahertz);
}

EXPORT int nvmlDeviceGetCudaComputeCapability(void* handle, int* major, int* minor) {
  CARD(major);
  if (minor == NULL) return kInvalidArgument;
  *major = card.major;
  *minor = card.minor;
  return kSuccess;
}

EXPORT int nvmlDeviceGetMemoryBusWidth(void* handle, unsigned* bits) {
  CARD(bits);
  *bits = card.memory_bus_bits;
  return kSuccess;
}

static int zero(void* handle, unsigned* value) {
  CARD(value);
  *value = 0;
  return kSuccess;
}
EXPORT int nvmlDeviceGetPerformanceState(void* handle, unsigned* state) { return zero(handle, state); }  // P0
EXPORT int nvmlDeviceGetComputeMode(void* handle, unsigned* mode) { return zero(handle, mode); }  // default
EXPORT int nvmlDeviceGetPersistenceMode(void* handle, unsigned* mode) { return zero(handle, mode); }
EXPORT int nvmlDeviceGetDisplayMode(void* handle, unsigned* on) { return zero(handle, on); }
EXPORT int nvmlDeviceGetDisplayActive(void* handle, unsigned* on) { return zero(handle, on); }
EXPORT int nvmlDeviceGetMultiGpuBoard(void* handle, unsigned* on) { return zero(handle, on); }
EXPORT int nvmlDeviceGetMaxMigDeviceCount(void* handle, unsigned* count) { return zero(handle, count); }
EXPORT int nvmlDeviceIsMigDeviceHandle(void* handle, unsigned* is) { return zero(handle, is); }

// NVML_P2P_STATUS_OK, _GPU_NOT_SUPPORTED.
EXPORT int nvmlDeviceGetP2PStatus(void* handle, void* other, unsigned capability, unsigned* status) {
  CARD(status);
  if (weir_card_index(other) < 0 || other == handle || capability > 4) return kInvalidArgument;
  *status = card.peers ? 0 : 2;
  return kSuccess;
}

struct fabric_info {  // nvmlGpuFabricInfo_t, nvmlGpuFabricInfo_v2_t after its version
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
};

// On no fabric.
EXPORT int nvmlDeviceGetGpuFabricInfo(void* handle, struct fabric_info* info) {
  CARD(info);
  *info = (struct fabric_info){.status = kNotSupported};  // NVML_GPU_FABRIC_STATE_NOT_SUPPORTED is 0
  return kSuccess;
}
EXPORT int nvmlDeviceGetGpuFabricInfoV(void* handle, unsigned* versioned) {
  CARD(versioned);
  return nvmlDeviceGetGpuFabricInfo(handle, (struct fabric_info*)(versioned + 1));
}
