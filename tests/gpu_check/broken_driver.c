// A driver that breaks as WEIR_TEST_DRIVER says: "hang", "die", or any number as cuInit's error code.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) int cuInit(unsigned flags) {
  const char* how = getenv("WEIR_TEST_DRIVER");
  (void)flags;
  if (how == NULL) return 0;
  if (strcmp(how, "hang") == 0) {
    for (;;) pause();
  }
  if (strcmp(how, "die") == 0) abort();
  return atoi(how);
}
