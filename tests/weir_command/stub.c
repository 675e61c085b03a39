/* A library that does nothing. */
int weir_command_stub(void);
__attribute__((visibility("default"))) int weir_command_stub(void) { return 0; }
