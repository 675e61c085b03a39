/* A program that is linked with libtorch. */
int weir_command_stub(void);
int main(void) { return weir_command_stub(); }
