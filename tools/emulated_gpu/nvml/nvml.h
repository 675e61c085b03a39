// What the files of this library share: the emulated cards, as libcuda.so.1 beside it tells them, and the handles of NVML,
// which are addresses in one table. Any thread. nvmlReturn_t and struct layouts are those of the NVML reference.
#ifndef WEIR_EMULATED_GPU_NVML_NVML_H_
#define WEIR_EMULATED_GPU_NVML_NVML_H_

#include <stddef.h>

#include "../device/monitor_abi.h"

#define EXPORT __attribute__((visibility("default")))

enum {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kFunctionNotFound = 13,
  kVersionMismatch = 25
};

// The card behind a handle, as it is now. What is not kSuccess is the answer of the call.
int weir_card(const void* handle, struct WeirEmulatedCard* card);
// Its place in the list, -1 if the handle is none.
int weir_card_index(const void* handle);
int weir_initialized(void);
int weir_processes(const void* handle, struct WeirEmulatedProcess* list, int room);

// Copies a text with its end; kInsufficientSize when it does not fit.
int weir_copy_text(char* to, unsigned room, const char* text);
void weir_uuid_text(const struct WeirEmulatedCard* card, char text[48]);

#endif
