// Stands in for Weir's core where the emulator asks it about blocks: the library's name is the core's, the answers are
// the test's.
#include <cstdint>

extern "C" {

__attribute__((visibility("default"))) int32_t (*fake_life_of)(const void* address, uint64_t bytes) = nullptr;

__attribute__((visibility("default"))) int32_t weir_life_of(const void* address, uint64_t bytes) {
  return fake_life_of == nullptr ? 0 : fake_life_of(address, bytes);
}

}  // extern "C"
