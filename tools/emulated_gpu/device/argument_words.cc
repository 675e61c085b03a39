#include "tools/emulated_gpu/device/argument_words.h"

#include <charconv>
#include <optional>

namespace weir::emulated {
namespace {

using Filled = ArgumentWords::Filled;
using Text = std::string_view;
constexpr size_t kWord = sizeof(uintptr_t);

bool StartsWith(Text text, Text start) { return text.substr(0, start.size()) == start; }
bool Contains(Text text, Text part) { return text.find(part) != Text::npos; }
size_t AlignUp(size_t value, size_t alignment) { return (value + alignment - 1) / alignment * alignment; }

bool Opens(char letter) { return letter == '(' || letter == '<' || letter == '{' || letter == '['; }
bool Closes(char letter) { return letter == ')' || letter == '>' || letter == '}' || letter == ']'; }

// The text up to the bracket that closes the one before it.
Text Inside(Text text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (Opens(text[i])) ++depth;
    if (Closes(text[i]) && depth-- == 0) return text.substr(0, i);
  }
  return text;
}

std::vector<Text> SplitAtCommas(Text text) {
  std::vector<Text> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && Opens(text[i])) ++depth;
    if (i < text.size() && Closes(text[i])) --depth;
    if (i < text.size() && (depth != 0 || text[i] != ',')) continue;
    Text part = text.substr(begin, i - begin);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    if (!part.empty()) parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

// Template arguments of the last component of `name` in a type such as a::name<3, float>.
std::vector<Text> TemplateArguments(Text type, Text name) {
  const size_t at = type.find(name);
  if (at == Text::npos) return {};
  return SplitAtCommas(Inside(type.substr(at + name.size())));
}

size_t Number(Text text) {
  size_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

ArgumentWords Words(size_t offset, size_t count, Filled filled = Filled::kAll) {
  ArgumentWords words;
  words.offset = static_cast<uint16_t>(offset);
  words.count = static_cast<uint16_t>(count);
  words.filled = filled;
  return words;
}

// ATen/native/cuda/MultiTensorApply.cuh: addresses[lists][entries], lengths[entries], what the kind of struct adds per
// entry, the tensor of each block, the chunk of each block, and for some an int.
std::optional<std::vector<ArgumentWords>> TensorLists(Text type, size_t size) {
  size_t lists = 0, more = 0, last = 4;
  if (Contains(type, "::FusedOptimizerTensorListMetadata<")) {
    lists = Number(TemplateArguments(type, "TensorListMetadata<").at(0));
    more = kWord;  // addresses of the steps
  } else if (Contains(type, "::TensorListScalarListMetadata<")) {
    const auto arguments = TemplateArguments(type, "TensorListScalarListMetadata<");
    if (arguments.size() != 2) return std::nullopt;
    const Text scalar = arguments[0];
    lists = Number(arguments[1]);
    more = scalar == "c10::complex<double>"       ? 16
           : scalar == "float" || scalar == "int" ? 4
           : scalar == "bool"                     ? 1
                                                  : 8;
    last = 0;
  } else if (Contains(type, "::TensorListMetadata<")) {
    lists = Number(TemplateArguments(type, "TensorListMetadata<").at(0));
  } else {
    return std::nullopt;
  }
  const bool wide =
      size > 4096;  // CUDA 13 and newer: 2240 blocks with 16-bit numbers, else 320 with 8-bit ones
  const size_t blocks = wide ? 2240 : 320, entry = wide ? 2 : 1;
  const size_t tail = blocks * (entry + 4) + last;
  const size_t per_entry = kWord * (lists + 1) + more;
  if (lists == 0 || size <= tail) return std::nullopt;
  const size_t entries = (size - tail) / per_entry;
  if (AlignUp(AlignUp(entries * per_entry, entry) + tail, kWord) != size) return std::nullopt;
  std::vector<ArgumentWords> found;
  const auto add = [&](size_t offset) {
    ArgumentWords words = Words(offset, entries, Filled::kByBlock);
    words.table_offset = static_cast<uint16_t>(entries * per_entry);
    words.table_entry = static_cast<uint8_t>(entry);
    found.push_back(words);
  };
  for (size_t list = 0; list < lists; ++list) add(list * entries * kWord);
  if (more == kWord && last != 0) add((lists + 1) * entries * kWord);
  return found;
}

// ATen/native/cuda/CUDALoops.cuh: the closure holds the offset calculator (dims, 25 dividers of 12 bytes, 25 strides of 4
// bytes for each operand), the operands' addresses, and the op's own closure.
std::optional<std::vector<ArgumentWords>> ElementwiseClosure(Text type, size_t size) {
  if (!StartsWith(type, "at::native::gpu_kernel_impl_nocast<") || !Contains(type, "::{lambda(int)#1}"))
    return std::nullopt;
  for (size_t operands = 12; operands > 0; --operands) {
    const size_t begin = AlignUp(304 + 100 * operands, kWord);
    if (begin + operands * kWord <= size) return {{Words(begin, operands)}};
  }
  return std::nullopt;
}

// The kinds of structs that are known; nullopt for others.
std::optional<std::vector<ArgumentWords>> KnownStruct(Text type, size_t size) {
  if (StartsWith(type, "std::array<")) {
    const auto arguments = TemplateArguments(type, "array<");
    if (arguments.size() != 2 || arguments[0].back() != '*') return std::nullopt;
    return {{Words(0, size / kWord)}};
  }
  if (StartsWith(type, "at::cuda::detail::TensorInfo<") ||
      Contains(type.substr(0, type.find('<')), "PackedTensorAccessor"))
    return {{Words(0, 1)}};
  if (StartsWith(type, "at::native::ReduceOp<") && !Contains(type, "complex<") && size > 64) {
    // From the end (ATen/native/cuda/Reduce.cuh): src, dst[2] (the second may be unset), three buffers, 16 bytes.
    return {{Words(size - 64, 2), Words(size - 40, 3)}};
  }
  if (Contains(type, "::CatArrInputTensorMetadata<")) {
    const auto arguments = TemplateArguments(type, "CatArrInputTensorMetadata<");
    if (arguments.size() != 4) return std::nullopt;
    return {{Words(0, Number(arguments[2]), Filled::kGridY)}};
  }
  // ATen/native/cuda/ForeachReduceOp.cu: a block for each address.
  if (type == "at::native::TensorListAddresses") return {{Words(0, size / kWord, Filled::kGridX)}};
  if (auto lists = TensorLists(type, size)) return lists;
  return ElementwiseClosure(type, size);
}

std::vector<ArgumentWords> WordsOf(Text type, bool typed, Parameter parameter) {
  const size_t count = parameter.size / kWord;
  if (count == 0 || parameter.offset % kWord != 0) return {};
  // Without types 8 bytes are a pointer or a whole number: C has no padding there.
  if (typed ? type.back() == '*' || (type.size() > 8 && type.substr(type.size() - 7) == "* const")
            : count == 1)
    return {Words(0, 1)};
  if (typed) {
    if (auto known = KnownStruct(type, parameter.size)) return *known;
  }
  return {Words(0, count, Filled::kPerhaps)};
}

}  // namespace

std::vector<std::string_view> ParameterTypes(std::string_view demangled) {
  if (demangled.empty() || demangled.back() != ')') return {};
  int depth = 0;
  for (size_t i = demangled.size(); i-- > 0;) {
    if (Closes(demangled[i])) ++depth;
    if (Opens(demangled[i]) && --depth == 0) return SplitAtCommas(Inside(demangled.substr(i + 1)));
  }
  return {};
}

std::vector<ArgumentWords> FindArgumentWords(std::string_view demangled, const Parameters& parameters) {
  const std::vector<Text> types = ParameterTypes(demangled);
  const bool typed = types.size() == parameters.size();
  std::vector<ArgumentWords> all;
  for (size_t i = 0; i < parameters.size(); ++i) {
    for (ArgumentWords words : WordsOf(typed ? types[i] : Text(), typed, parameters[i])) {
      words.parameter = static_cast<uint16_t>(i);
      all.push_back(words);
    }
  }
  return all;
}

}  // namespace weir::emulated
