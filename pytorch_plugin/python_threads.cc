#include "pytorch_plugin/python_threads.h"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <string_view>

namespace weir::plugin {
namespace {

// What of Python's C API is needed; `complete` if all of it is there.
struct Python {
  int (*is_initialized)();
  int (*is_finalizing)();
  const char* (*version)();
  int (*ensure_gil)();
  void (*release_gil)(int);
  int (*add_call)(int (*)(void*), void*);
  void* (*this_thread)();
  uint64_t (*thread_id)(void*);
  void* (*interpreter)();
  void* (*first_thread)(void*);
  void* (*next_thread)(void*);
  void* (*frame_of)(void*);
  void* (*frame_back)(void*);
  void* (*code_of)(void*);
  void* (*attribute)(void*, const char*);
  long (*as_long)(void*);
  const char* (*as_text)(void*);
  void (*release)(void*);
  void (*fetch_error)(void**, void**, void**);
  void (*restore_error)(void*, void*, void*);
  void* (*modules)();  // borrowed
  void* (*item)(void*, const char*);
  void* (*values)(void*);
  void* (*element)(void*, long);
  int (*disable_collector)();
  int (*enable_collector)();
  bool complete;
};

template <typename Function>
bool Find(const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return *function != nullptr;
}

const Python& Api() {
  static const Python api = [] {
    Python found{};
    const std::array all = {
        Find("Py_IsInitialized", &found.is_initialized),
        Find("Py_GetVersion", &found.version),
        Find("Py_IsFinalizing", &found.is_finalizing) || Find("_Py_IsFinalizing", &found.is_finalizing),
        Find("PyGILState_Ensure", &found.ensure_gil),
        Find("PyGILState_Release", &found.release_gil),
        Find("Py_AddPendingCall", &found.add_call),
        Find("PyGILState_GetThisThreadState", &found.this_thread),
        Find("PyThreadState_GetID", &found.thread_id),
        Find("PyInterpreterState_Main", &found.interpreter),
        Find("PyInterpreterState_ThreadHead", &found.first_thread),
        Find("PyThreadState_Next", &found.next_thread),
        Find("PyThreadState_GetFrame", &found.frame_of),
        Find("PyFrame_GetBack", &found.frame_back),
        Find("PyFrame_GetCode", &found.code_of),
        Find("PyObject_GetAttrString", &found.attribute),
        Find("PyLong_AsLong", &found.as_long),
        Find("PyUnicode_AsUTF8", &found.as_text),
        Find("Py_DecRef", &found.release),
        Find("PyErr_Fetch", &found.fetch_error),
        Find("PyErr_Restore", &found.restore_error),
        Find("PyImport_GetModuleDict", &found.modules),
        Find("PyMapping_GetItemString", &found.item),
        Find("PyMapping_Values", &found.values),
        Find("PySequence_GetItem", &found.element),
        Find("PyGC_Disable", &found.disable_collector),
        Find("PyGC_Enable", &found.enable_collector)};
    found.complete = true;
    for (const bool there : all) found.complete = found.complete && there;
    return found;
  }();
  return api;
}

// A reference that is given back.
class Held {
 public:
  explicit Held(void* object) : object_(object) {}
  Held(Held&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  Held& operator=(Held&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Held() {
    if (object_ != nullptr) Api().release(object_);
  }
  void* get() const { return object_; }

 private:
  void* object_;
};

// While Python's objects are looked at: an exception of the calling thread is set aside, and nothing is collected, for that can
// run the job's code in the middle of an allocation (up to Python 3.11 a new frame object is enough).
class Undisturbed {
 public:
  Undisturbed() : collected_(Api().disable_collector() != 0) { Api().fetch_error(&type_, &value_, &trace_); }
  ~Undisturbed() {
    Api().restore_error(type_, value_, trace_);
    if (collected_) Api().enable_collector();
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  const bool collected_;
  void *type_ = nullptr, *value_ = nullptr, *trace_ = nullptr;
};

// Of a code object: "co_name", "co_filename". Valid as long as the code object.
std::string_view Text(const Held& code, const char* name) {
  const Held text(code.get() == nullptr ? nullptr : Api().attribute(code.get(), name));
  const char* characters = text.get() == nullptr ? nullptr : Api().as_text(text.get());
  return characters == nullptr ? std::string_view() : characters;
}

bool Is(const Held& code, std::string_view file, std::string_view function) {
  return Text(code, "co_name") == function && Text(code, "co_filename").ends_with(file);
}

bool Waits(const Held& code) {
  for (const auto& [file, function] : {std::pair{"/threading.py", "wait"},
                                       {"/threading.py", "_wait_for_tstate_lock"},
                                       {"/threading.py", "join"},
                                       {"/threading.py", "acquire"},
                                       {"/selectors.py", "select"},
                                       {"/multiprocessing/connection.py", "_recv"},
                                       {"/socket.py", "accept"},
                                       {"/subprocess.py", "_try_wait"},
                                       {"/concurrent/futures/thread.py", "_worker"}}) {
    if (Is(code, file, function)) return true;
  }
  return false;
}

PythonThread Look(void* state) {
  PythonThread thread{.id = Api().thread_id(state)};
  Held frame(Api().frame_of(state));
  thread.frame = frame.get();
  if (frame.get() == nullptr) return thread;
  {
    const Held instruction(Api().attribute(frame.get(), "f_lasti"));
    if (instruction.get() != nullptr) thread.instruction = Api().as_long(instruction.get());
  }
  thread.waits = Waits(Held(Api().code_of(frame.get())));
  while (frame.get() != nullptr && !thread.backward) {
    thread.backward =
        Is(Held(Api().code_of(frame.get())), "/torch/autograd/graph.py", "_engine_run_backward");
    frame = Held(Api().frame_back(frame.get()));
  }
  return thread;
}

}  // namespace

bool HasPythonThreads() {
  static const bool tells = Api().complete && std::strstr(Api().version(), "free-threading") == nullptr;
  return tells && Api().is_initialized() != 0 && Api().is_finalizing() == 0;
}

uint64_t PythonThreadId() {
  if (!HasPythonThreads()) return 0;
  void* state = Api().this_thread();
  return state == nullptr ? 0 : Api().thread_id(state);
}

WithGil::WithGil() : held_(HasPythonThreads()) {
  if (held_) state_ = Api().ensure_gil();
}

WithGil::~WithGil() {
  if (held_) Api().release_gil(state_);
}

std::vector<PythonThread> PythonThreads() {
  const Undisturbed undisturbed;
  std::vector<PythonThread> threads;
  for (void* state = Api().first_thread(Api().interpreter()); state != nullptr;
       state = Api().next_thread(state))
    threads.push_back(Look(state));
  return threads;
}

bool HasHostCollectives() {
  const Undisturbed undisturbed;
  const Held module(Api().item(Api().modules(), "torch.distributed.distributed_c10d"));
  if (module.get() == nullptr) return false;
  const Held groups(Api().attribute(module.get(), "_pg_map"));  // group -> (backend, store)
  const Held entries(groups.get() == nullptr ? nullptr : Api().values(groups.get()));
  if (entries.get() == nullptr) return true;  // another torch: nothing is known
  for (long i = 0;; ++i) {
    const Held entry(Api().element(entries.get(), i));
    if (entry.get() == nullptr) return false;  // behind the last one
    const Held backend(Api().element(entry.get(), 0));
    const char* text = backend.get() == nullptr ? nullptr : Api().as_text(backend.get());
    const std::string_view name = text == nullptr ? std::string_view() : text;
    if (name != "nccl" && name.find("cuda:nccl") == name.npos) return true;
  }
}

bool CallBetweenInstructions(int (*call)(void*)) { return Api().add_call(call, nullptr) == 0; }

}  // namespace weir::plugin
