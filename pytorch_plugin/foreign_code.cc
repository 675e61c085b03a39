#include "pytorch_plugin/foreign_code.h"

#include <ATen/Context.h>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <string>

#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/torch_version.h"

namespace weir::plugin {
namespace {

// Torch's own, apart from aten: ops over collectives, quantized and sparse tensors, references in Python. Their arguments
// are pinned; Inductor's namespaces are not here, for they come with compiled code.
constexpr std::array kOwnNamespaces = {
    "_c10d_functional",
    "_c10d_functional_autograd",
    "_dtensor",
    "_quantized",
    "aten",
    "c10d",
    "fsdp",
    "mkl",
    "mkldnn",
    "onednn",
    "prims",
    "profiler",
    "quantized",
    "rngprims",
    "sparse",
    "symm_mem",
};

// aten ops that keep a pointer for later (dropout states and weight buffers of cuDNN, plans of cuSPARSELt), share bytes
// between storages (_lazy_clone), or are kernels of Triton.
constexpr std::array kKeepers = {"aten::_cudnn_", "aten::_cslt_", "aten::_lazy_clone", "aten::_triton_",
                                 "aten::_cufft_"};

std::atomic<const char*> reason{nullptr};

bool Starts(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

// ---- loaded libraries

std::string FolderOf(const void* function) {
  Dl_info info;
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

// Where the libraries that may link torch and CUDA lie: torch (its lib/ and its extension module), the wheels beside it
// that it depends on, and Weir.
struct KnownFolders {
  std::string torch, nvidia, weir;
};

const KnownFolders& Known() {
  static const auto* known = [] {
    const std::string lib = FolderOf(reinterpret_cast<const void*>(&at::globalContext));
    const std::string torch = lib.substr(0, lib.rfind('/', lib.size() - 2) + 1);
    const std::string packages = torch.substr(0, torch.rfind('/', torch.size() - 2) + 1);
    return new KnownFolders{torch, packages + "nvidia/",
                            FolderOf(reinterpret_cast<const void*>(&weir_plugin_note_foreign))};
  }();
  return *known;
}

bool IsKnownLibrary(std::string_view path) {
  const KnownFolders& known = Known();
  for (const std::string* folder : {&known.torch, &known.nvidia, &known.weir}) {
    if (!folder->empty() && Starts(path, *folder)) return true;
  }
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return Starts(name, "libcuda.so") || Starts(name, "libcudart") ||
         Starts(name, "libnv");  // the driver's own
}

bool IsTorchOrCuda(std::string_view library) {
  for (const char* start : {"libtorch", "libc10", "libcudart.so", "libcuda.so"}) {
    if (Starts(library, start)) return true;
  }
  return false;
}

// The first library of torch or CUDA that an object names as needed, else empty.
std::string_view NeededOfTorchOrCuda(const dl_phdr_info& object) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    }
  }
  if (dynamic == nullptr) return {};
  const char* names = nullptr;
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
  }
  // glibc adds the load address to it, except where the section cannot be written (the vDSO).
  if (names == nullptr || reinterpret_cast<uintptr_t>(names) < object.dlpi_addr) return {};
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_NEEDED && IsTorchOrCuda(names + entry->d_un.d_val))
      return names + entry->d_un.d_val;
  }
  return {};
}

int LookAtObject(dl_phdr_info* object, size_t, void*) {
  std::string path = object->dlpi_name;
  if (path.empty()) {  // the program
    char program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    path.assign(program, length > 0 ? static_cast<size_t>(length) : 0);
  }
  if (IsKnownLibrary(path)) return 0;
  const std::string_view needed = NeededOfTorchOrCuda(*object);
  if (needed.empty()) return 0;
  NoteForeignCode(path.substr(path.rfind('/') + 1) + ", which links " + std::string(needed));
  return 1;
}

int CountLoads(dl_phdr_info* object, size_t, void* loads) {
  *static_cast<unsigned long long*>(loads) = object->dlpi_adds;
  return 1;
}

void LookAtNewLibraries() {
  static std::atomic<unsigned long long> seen{0};
  unsigned long long loads = 0;
  dl_iterate_phdr(&CountLoads, &loads);
  if (seen.exchange(loads) != loads) dl_iterate_phdr(&LookAtObject, nullptr);
}

}  // namespace

bool IsKnownConsumer(std::string_view op) {
  if (!Starts(op, "aten::")) return false;
  return std::none_of(kKeepers.begin(), kKeepers.end(),
                      [op](const char* keeper) { return Starts(op, keeper); });
}

void NoteOperator(std::string_view op) {
  const std::string_view space = op.substr(0, op.find("::"));
  if (std::find(kOwnNamespaces.begin(), kOwnNamespaces.end(), space) != kOwnNamespaces.end()) return;
  NoteForeignCode("the operator " + std::string(op));
}

void NoteForeignCode(std::string_view what) {
  if (reason.load() != nullptr) return;
  static const std::string minor =
      "torch " C10_STRINGIZE(TORCH_VERSION_MAJOR) "." C10_STRINGIZE(TORCH_VERSION_MINOR);
  auto* text = new std::string(
      "with " + minor + " nothing leaves in a job with compiled or foreign code; seen: " + std::string(what));
  const char* none = nullptr;
  if (!reason.compare_exchange_strong(none, text->c_str())) {
    delete text;
    return;
  }
  weir_log(1, text->c_str());
}

const char* ForeignCode() {
  if (reason.load() == nullptr) LookAtNewLibraries();
  return reason.load();
}

}  // namespace weir::plugin

void weir_plugin_note_foreign(const char* what) { weir::plugin::NoteForeignCode(what); }
