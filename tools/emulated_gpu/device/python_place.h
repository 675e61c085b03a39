// Where the Python code of this thread is. The interpreter is found by name; nothing of it is linked.
#ifndef WEIR_EMULATED_GPU_DEVICE_PYTHON_PLACE_H_
#define WEIR_EMULATED_GPU_DEVICE_PYTHON_PLACE_H_

#include <string>

namespace weir::emulated {

struct Place {
  std::string text;     // "train.py:31", "" on a thread without Python code
  bool prints = false;  // torch makes the text of a tensor
};

// The innermost frame that is not inside the torch package, else the innermost one. May wait for the interpreter's lock: the
// caller holds no lock that a Python thread may want.
Place PythonPlace();

}  // namespace weir::emulated

#endif
