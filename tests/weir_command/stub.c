/* A library that does nothing, but knows one fault plan and files named .profile, as the emulated GPU does. */
#include <stdio.h>
#include <string.h>

int weir_command_stub(void);
int weir_emulated_check_faults(const char* spec, char* text, size_t room);
int weir_emulated_check_profile(const char* name, char* text, size_t room);

__attribute__((visibility("default"))) int weir_command_stub(void) { return 0; }

__attribute__((visibility("default"))) int weir_emulated_check_faults(const char* spec, char* text,
                                                                      size_t room) {
  if (strcmp(spec, "seed:1") == 0) return 0;
  snprintf(text, room, "%s is no plan", spec);
  return 1;
}

__attribute__((visibility("default"))) int weir_emulated_check_profile(const char* name, char* text,
                                                                       size_t room) {
  if (strstr(name, ".profile") != NULL) return 0;
  snprintf(text, room, "%s is no profile", name);
  return 1;
}
