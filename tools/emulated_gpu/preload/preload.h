// The preload library of the emulated GPU: what its C files share. Links nothing but libc.
// It is inert until a cuda or cuBLAS entry point is called, so that every child process may inherit
// LD_PRELOAD.
#ifndef WEIR_EMULATED_GPU_PRELOAD_H_
#define WEIR_EMULATED_GPU_PRELOAD_H_

#include <stddef.h>

// 1 when WEIR_GPU names the emulated GPU (`emulated` or `emulated:PROFILE`); decided at the first call.
int weir_emulation_wanted(void);

// Address of the entry point `name`: from the emulator if it is wanted, else from the library that would have
// been called without us. Never null: a name that nobody has gives a function that fails with NOT_SUPPORTED.
void* weir_entry_point(const char* name);

#endif
