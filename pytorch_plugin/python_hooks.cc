#include "pytorch_plugin/python_hooks.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "allocator/base/safeguards.h"
#include "pytorch_plugin/allocator_stats.h"
#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/escaped_pointers.h"
#include "pytorch_plugin/foreign_code.h"
#include "pytorch_plugin/python_hooks_source.h"
#include "pytorch_plugin/torch_version.h"

namespace weir::plugin {
namespace {

// The few functions of Python's C API that are needed; all null without Python.
struct Python {
  int (*is_initialized)();
  int (*ensure_gil)();
  void (*release_gil)(int);
  int (*run)(const char*, void*);
  int (*holds_gil)();
  void* (*thread)();
  void* (*save_thread)();
  void (*restore_thread)(void*);
  int (*is_finalizing)();  // may be null
};

template <typename Function>
void Find(const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

const Python& Api() {
  static const Python api = [] {
    Python found{};
    Find("Py_IsInitialized", &found.is_initialized);
    Find("PyGILState_Ensure", &found.ensure_gil);
    Find("PyGILState_Release", &found.release_gil);
    Find("PyRun_SimpleStringFlags", &found.run);
    Find("PyGILState_Check", &found.holds_gil);
    Find("PyGILState_GetThisThreadState", &found.thread);
    Find("PyEval_SaveThread", &found.save_thread);
    Find("PyEval_RestoreThread", &found.restore_thread);
    Find("Py_IsFinalizing", &found.is_finalizing);  // 3.13 and later
    if (found.is_finalizing == nullptr) Find("_Py_IsFinalizing", &found.is_finalizing);
    return found;
  }();
  return api;
}

bool Running() {
  const Python& python = Api();
  if (python.is_initialized == nullptr || python.run == nullptr || python.ensure_gil == nullptr) return false;
  if (python.is_initialized() == 0) return false;
  return python.is_finalizing == nullptr || python.is_finalizing() == 0;
}

std::string Address(const void* function) {
  char text[32];
  std::snprintf(text, sizeof text, "%llu",
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(function)));
  return text;
}

}  // namespace

void InstallPythonHooks() {
  if (!Running()) return;
  const std::string source =
      std::string(kPythonHooks) + "\n_weir_install(" +
      Address(reinterpret_cast<const void*>(&weir_plugin_pin)) + "," +
      Address(reinterpret_cast<const void*>(&weir_plugin_address)) + "," +
      Address(reinterpret_cast<const void*>(&weir_plugin_hold)) + "," +
      Address(reinterpret_cast<const void*>(&weir_plugin_let_go)) + "," +
      Address(reinterpret_cast<const void*>(&weir_read_addresses)) + "," +
      Address(reinterpret_cast<const void*>(&weir_plugin_memory_info)) + "," +
      Address(kOnlyKnownConsumers ? reinterpret_cast<const void*>(&weir_plugin_note_foreign) : nullptr) +
      ")\ndel _weir_install\n";
  const int gil = Api().ensure_gil();
  if (Api().run(source.c_str(), nullptr) != 0) {
    weir_log(1, "the Python wrappers of data_ptr() and resize_() could not be installed");
  }
  Api().release_gil(gil);
}

void* ReleaseGil() {
  if (!Running() || Api().thread == nullptr || Api().save_thread == nullptr) return nullptr;
  if (Without(Safeguard::kWaitGivesGilAway)) return nullptr;
  // A thread that Python has never seen holds no GIL, and PyGILState_Check would say it does.
  if (Api().thread() == nullptr || Api().holds_gil() == 0) return nullptr;
  return Api().save_thread();
}

void RetakeGil(void* token) {
  if (token != nullptr) Api().restore_thread(token);
}

}  // namespace weir::plugin
