// Which words of a kernel's arguments hold pointers for certain. Pure functions; any thread.
//
// Host code leaves parts of the structs that it passes by value as they were on its stack: unused dimensions, unused list
// entries, padding. Such a word may look like a pointer to memory that is long gone, and no card minds. So a word counts
// as a pointer for certain only by the type of the parameter (the demangled name carries it) and, for the structs of
// ATen below, by their layout; a word of any other struct is a pointer perhaps.
#ifndef WEIR_EMULATED_GPU_DEVICE_ARGUMENT_WORDS_H_
#define WEIR_EMULATED_GPU_DEVICE_ARGUMENT_WORDS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/emulated_gpu/device/cubin.h"

namespace weir::emulated {

// `count` words that follow each other in one parameter.
struct ArgumentWords {
  enum class Filled : uint8_t {
    kAll,
    kGridX,  // the first grid.x of them: the results of a norm over a list
    kGridY,  // the first grid.y of them: the inputs of a concatenation
    kByBlock,  // up to the largest number that the launch's blocks have in a table: the lists of a multi-tensor kernel
    kPerhaps  // not known; a word may be a leftover
  };
  uint16_t parameter = 0;
  uint16_t offset = 0;  // bytes, in the parameter
  uint16_t count = 0;
  Filled filled = Filled::kAll;
  uint16_t table_offset = 0;  // kByBlock: of the table in the parameter
  uint8_t table_entry = 0;    // kByBlock: bytes of one entry, 1 or 2
};

// Types of the parameters in a demangled name, "" for names that carry none (extern "C").
std::vector<std::string_view> ParameterTypes(std::string_view demangled);

std::vector<ArgumentWords> FindArgumentWords(std::string_view demangled, const Parameters& parameters);

}  // namespace weir::emulated

#endif
