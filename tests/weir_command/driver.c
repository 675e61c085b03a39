/* An NVIDIA driver for CUDA TEST_CUDA (13020 if not set) with TEST_DEVICES devices (1 if not set; 0 answers NO_DEVICE, as the
 * real one does) of TEST_CAPABILITY ("8.9") in TEST_COMPUTE_MODE, which map virtual memory unless TEST_NO_VMM is set. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

int cuInit(unsigned flags);
int cuDriverGetVersion(int* version);
int cuDeviceGetCount(int* count);
int cuDeviceGet(int* device, int ordinal);
int cuDeviceGetName(char* name, int size, int device);
int cuDeviceTotalMem_v2(size_t* bytes, int device);
int cuDeviceGetAttribute(int* value, int attribute, int device);

static int Number(const char* variable, int otherwise) {
  const char* text = getenv(variable);
  return text ? atoi(text) : otherwise;
}

static int Devices(void) { return Number("TEST_DEVICES", 1); }

EXPORT int cuInit(unsigned flags) {
  (void)flags;
  return Devices() > 0 ? 0 : 100;
}

EXPORT int cuDriverGetVersion(int* version) {
  *version = Number("TEST_CUDA", 13020);
  return 0;
}

EXPORT int cuDeviceGetCount(int* count) {
  *count = Devices();
  return 0;
}

EXPORT int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal + 100; /* a handle is no ordinal */
  return 0;
}

EXPORT int cuDeviceGetName(char* name, int size, int device) {
  if (device < 100) return 101;
  strncpy(name, "Test card", (size_t)size);
  return 0;
}

EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  if (device < 100) return 101;
  *bytes = (size_t)24 << 30;
  return 0;
}

EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device < 100) return 101;
  const char* capability = getenv("TEST_CAPABILITY");
  *value = 0;
  if (attribute == 102) *value = getenv("TEST_NO_VMM") == NULL;
  if (attribute == 20) *value = Number("TEST_COMPUTE_MODE", 0);
  if (capability != NULL && attribute == 75) *value = atoi(capability);
  if (capability != NULL && attribute == 76) *value = atoi(strchr(capability, '.') + 1);
  return 0;
}
