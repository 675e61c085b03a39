#include "tools/emulated_gpu/device/python_place.h"

#include <dlfcn.h>

#include <cstring>

namespace weir::emulated {
namespace {

// The functions of Python's C API that this needs; all are in its limited API but PyFrame_GetBack (3.9).
struct Interpreter {
  int (*is_initialized)();
  void* (*thread_state)();
  int (*ensure)();
  void (*release)(int);
  void* (*frame)();
  void* (*back)(void*);
  void* (*code)(void*);
  int (*line)(void*);
  void* (*attribute)(void*, const char*);
  const char* (*text)(void*, ssize_t*);
  void (*drop)(void*);
  void (*fetch_error)(void**, void**, void**);
  void (*restore_error)(void*, void*, void*);
  bool complete = true;

  template <typename Function>
  void Find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    complete = complete && function != nullptr;
  }

  Interpreter() {
    Find(is_initialized, "Py_IsInitialized");
    Find(thread_state, "PyGILState_GetThisThreadState");
    Find(ensure, "PyGILState_Ensure");
    Find(release, "PyGILState_Release");
    Find(frame, "PyEval_GetFrame");
    Find(back, "PyFrame_GetBack");
    Find(code, "PyFrame_GetCode");
    Find(line, "PyFrame_GetLineNumber");
    Find(attribute, "PyObject_GetAttrString");
    Find(text, "PyUnicode_AsUTF8AndSize");
    Find(drop, "Py_DecRef");
    Find(fetch_error, "PyErr_Fetch");
    Find(restore_error, "PyErr_Restore");
  }
};

std::string FileOf(const Interpreter& python, void* frame) {
  std::string file;
  void* code = python.code(frame);
  void* name = python.attribute(code, "co_filename");
  const char* text = name == nullptr ? nullptr : python.text(name, nullptr);
  if (text != nullptr) file = text;
  if (name != nullptr) python.drop(name);
  python.drop(code);
  return file;
}

bool IsOfTorch(const std::string& file) {
  return file.find("/site-packages/torch/") != std::string::npos ||
         file.find("/dist-packages/torch/") != std::string::npos || file.rfind("<frozen", 0) == 0;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// `frame` is borrowed.
Place PlaceFrom(const Interpreter& python, void* frame) {
  Place place;
  void* owned = nullptr;
  while (frame != nullptr) {
    const std::string file = FileOf(python, frame);
    const bool of_torch = IsOfTorch(file), prints = of_torch && EndsWith(file, "/_tensor_str.py");
    place.prints = place.prints || prints;
    if (place.text.empty() || !of_torch)
      place.text = file.substr(file.rfind('/') + 1) + ":" + std::to_string(python.line(frame));
    if (!of_torch) break;
    void* const outer = python.back(frame);
    if (owned != nullptr) python.drop(owned);
    frame = owned = outer;
  }
  if (owned != nullptr) python.drop(owned);
  return place;
}

}  // namespace

Place PythonPlace() {
  static const Interpreter python;
  if (!python.complete || python.is_initialized() == 0 || python.thread_state() == nullptr) return {};
  const int state = python.ensure();
  void *type, *value, *trace;
  python.fetch_error(&type, &value, &trace);
  Place place = PlaceFrom(python, python.frame());
  python.restore_error(type, value, trace);
  python.release(state);
  return place;
}

}  // namespace weir::emulated
