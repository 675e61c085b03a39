/* An NVIDIA driver with TEST_DEVICES devices (1 if not set; 0 answers NO_DEVICE, as the real one does). */
#include <stdlib.h>

int cuInit(unsigned flags);
int cuDeviceGetCount(int* count);

static int Devices(void) {
  const char* text = getenv("TEST_DEVICES");
  return text ? atoi(text) : 1;
}

__attribute__((visibility("default"))) int cuInit(unsigned flags) {
  (void)flags;
  return Devices() > 0 ? 0 : 100;
}

__attribute__((visibility("default"))) int cuDeviceGetCount(int* count) {
  *count = Devices();
  return 0;
}
