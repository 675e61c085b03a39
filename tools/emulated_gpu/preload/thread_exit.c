// Python before 3.14 ends a thread that wants the GIL while the interpreter shuts down with pthread_exit(), which unwinds through
// whatever called: an autograd thread that still lets go of a Python object, in a destructor of torch, ends the process with
// SIGABRT ("terminate called without an active exception"), after the job has done all of its work. A real card gives these
// threads time; the emulated one with kernels `none` does not. Here such a thread sleeps until the process ends, as it does from
// Python 3.14 on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include "preload.h"

// Whether the interpreter shuts down and knows this thread.
static int python_wants_it_gone(void) {
  int (*is_finalizing)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsFinalizing");  // 3.13 and later
  if (is_finalizing == NULL) is_finalizing = (int (*)(void))dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
  void* (*state)(void) = (void* (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
  return is_finalizing != NULL && state != NULL && is_finalizing() && state() != NULL;
}

__attribute__((visibility("default"), noreturn)) void pthread_exit(void* result) {
  while (weir_emulation_wanted() && python_wants_it_gone()) pause();
  ((void (*)(void*))dlsym(RTLD_NEXT, "pthread_exit"))(result);
  __builtin_unreachable();
}
