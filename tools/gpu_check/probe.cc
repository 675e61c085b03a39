// What the driver of this machine does where its documentation leaves it open, and what its calls cost: the
// facts that Weir's design rests on. Stands alone: driver API by dlopen, no CUDA headers, no torch, one
// translation unit. The bundle carries it as one file too (probe.cc with its parts put in).
//
//   g++ -O2 -std=c++17 probe.cc -ldl -lpthread -o probe && ./probe --json probe.json
//
// Each step runs in a process of its own with a time limit, so that a step that fails, hangs or kills its
// context is one line of the table. Exit code 0: every step ran or was skipped for a reason; 1: some did not.
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe_copies.h"

namespace {

void DeviceFacts() {
  double init = 0, context = 0;
  init = Micros([] { MUST(Init(0)); });
  context = Micros([] { Start(); });
  int version = 0, count = 0, peers = 0;
  char name[256] = "";
  size_t device_total = 0, free = 0, total = 0, granularity = 0;
  MUST(Version(&version));
  MUST(DeviceCount(&count));
  MUST(DeviceName(name, sizeof name, 0));
  MUST(DeviceTotal(&device_total, 0));
  MUST(MemInfo(&free, &total));
  for (int peer = 1; peer < count; ++peer) {
    int can = 0;
    peers += cu.CanAccessPeer(&can, 0, peer) == 0 ? can : 0;
  }
  const Properties properties;
  if (Attribute(102) == 1) cu.Granularity(&granularity, &properties, 0);
  Line("%s, compute capability %d.%d, driver API %d, %d copy engines", name, Attribute(75), Attribute(76),
       version, Attribute(40));
  Line("%d device(s), %d peer(s) of device 0; virtual memory management: %s", count, peers,
       Attribute(102) == 1 ? "yes" : "NO, a job would run without Weir");
  Line("memory: %zu MiB by the device, %zu MiB by cuMemGetInfo (%s), %zu MiB free", device_total / kMiB,
       total / kMiB, device_total == total ? "equal" : "they differ: MIG or a limit", free / kMiB);
  Figure("compute_capability", Attribute(75) * 10 + Attribute(76), "");
  Figure("driver_version", version, "");
  Figure("devices", count, "");
  Figure("peers", peers, "");
  Figure("vmm", Attribute(102), "");
  Figure("copy_engines", Attribute(40), "");
  Figure("multiprocessors", Attribute(16), "");
  Figure("l2_bytes", Attribute(38), "B");
  Figure("shared_per_multiprocessor", Attribute(81), "B");
  Figure("shared_per_block", Attribute(97), "B");
  Figure("threads_per_multiprocessor", Attribute(39), "");
  Figure("blocks_per_multiprocessor", Attribute(106), "");
  Figure("memory_bus", Attribute(37), "bit");
  Figure("clock", Attribute(13), "kHz");
  Figure("memory_clock", Attribute(36), "kHz");
  Figure("host_numa_vmm", Attribute(141), "");
  Figure("host_numa_node", Attribute(134), "");
  Figure("granularity", static_cast<double>(granularity), "B");
  Figure("device_total", static_cast<double>(device_total), "B");
  Figure("info_total", static_cast<double>(total), "B");
  Figure("info_free", static_cast<double>(free), "B");
  Figure("init", init / 1e3, "ms");
  Figure("context", context / 1e3, "ms");
}

struct Step {
  const char* name;
  void (*run)();
  int limit;  // seconds
};
constexpr Step kSteps[] = {{"device", DeviceFacts, 20},
                           {"alias copies", AliasesByCopies, 15},
                           {"alias kernels", AliasesByKernels, 15},
                           {"vmm cost", VmmCost, 20},
                           {"vmm stalls", VmmBesideAKernel, 15},
                           {"mapper", LaunchesBesideAMapper, 15},
                           {"capture", CaptureRules, 10},
                           {"copies", Copies, 20},
                           {"calls", CallCost, 10},
                           {"pinned", PinnedMemory, 20},
                           {"host backed", HostBacked, 10},
                           {"export", Exportable, 10},
                           {"reset", AfterReset, 10},
                           {"exit", ExitOrder, 10}};

// What one step said and how it ended.
struct Outcome {
  std::string status = "ok";  // or "skipped", "failed", "timed out", "killed"
  std::string why;
  double seconds = 0;
  std::vector<std::string> lines;
  std::vector<std::string> figures;  // JSON members
};

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + '"';
}

void LoadDriver(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
    // A name that an older driver lacks answers NOT_FOUND (500).
#define X(name, symbol, ...)                                 \
  if (void* found = dlsym(library, #symbol)) {               \
    cu.name = reinterpret_cast<int (*)(__VA_ARGS__)>(found); \
  } else {                                                   \
    cu.name = +[](__VA_ARGS__) { return 500; };              \
  }
  CALLS(X)
#undef X
}

[[noreturn]] void RunInChild(const Step& step, const char* driver, int pipe) {
  to_parent = fdopen(pipe, "w");
  BeforeTheDriver();
  try {
    LoadDriver(driver);
    step.run();
    std::fputs("E\tok\t\n", to_parent);
  } catch (const Skip& reason) {
    std::fprintf(to_parent, "E\tskipped\t%s\n", reason.what());
  } catch (const std::exception& error) {
    std::fprintf(to_parent, "E\tfailed\t%s\n", error.what());
  }
  std::fflush(to_parent);
  std::exit(0);
}

void Understand(const std::string& line, Outcome& outcome) {
  const size_t first = line.find('\t'), second = line.find('\t', first + 1),
               third = line.find('\t', second + 1);
  if (line[0] == 'L') {
    outcome.lines.push_back(line.substr(first + 1));
  } else if (line[0] == 'F') {
    outcome.figures.push_back(Quoted(line.substr(first + 1, second - first - 1)) +
                              ": {\"value\": " + line.substr(second + 1, third - second - 1) +
                              ", \"unit\": " + Quoted(line.substr(third + 1)) + "}");
  } else if (line[0] == 'E') {
    outcome.status = line.substr(first + 1, second - first - 1);
    outcome.why = line.substr(second + 1);
  }
}

// Reads what the child says until it has ended or `limit` seconds have passed. False: they have passed.
bool Listen(int pipe, double limit, Outcome& outcome) {
  const auto start = Clock::now();
  std::string text;
  for (char buffer[4096];;) {
    const double left = limit - Seconds(start);
    pollfd wanted = {pipe, POLLIN, 0};
    if (left <= 0 || poll(&wanted, 1, static_cast<int>(left * 1e3) + 1) <= 0) return false;
    const ssize_t got = read(pipe, buffer, sizeof buffer);
    if (got <= 0) return true;
    text.append(buffer, static_cast<size_t>(got));
    for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
      Understand(text.substr(0, end), outcome);
  }
}

Outcome Run(const Step& step, const char* driver, double limit) {
  Outcome outcome;
  outcome.status = "killed";
  const auto start = Clock::now();
  int pipes[2];
  if (pipe(pipes) != 0) return outcome;
  const pid_t child = fork();
  if (child == 0) {
    close(pipes[0]);
    RunInChild(step, driver, pipes[1]);
  }
  close(pipes[1]);
  if (!Listen(pipes[0], limit, outcome)) {
    outcome.status = "timed out";
    outcome.why = "after " + std::to_string(static_cast<int>(limit)) + " s";
    kill(child, SIGKILL);
  }
  close(pipes[0]);
  int state = 0;
  waitpid(child, &state, 0);
  if (WIFSIGNALED(state) && outcome.status != "timed out") {
    outcome.status = "killed";
    outcome.why = "by signal " + std::to_string(WTERMSIG(state));
  }
  outcome.seconds = Seconds(start);
  return outcome;
}

std::string AsJson(const Step& step, const Outcome& outcome) {
  std::string json = "  " + Quoted(step.name) + ": {\"status\": " + Quoted(outcome.status) +
                     ", \"why\": " + Quoted(outcome.why) +
                     ", \"seconds\": " + std::to_string(outcome.seconds) + ",\n    \"figures\": {";
  for (size_t i = 0; i < outcome.figures.size(); ++i)
    json += (i == 0 ? "" : ",\n      ") + outcome.figures[i];
  json += "},\n    \"lines\": [";
  for (size_t i = 0; i < outcome.lines.size(); ++i)
    json += (i == 0 ? "" : ",\n      ") + Quoted(outcome.lines[i]);
  return json + "]}";
}

struct Arguments {
  const char *json = nullptr, *driver = "libcuda.so.1", *only = nullptr;
  double limit = 115;  // seconds for all steps
};

bool Parse(int count, char** words, Arguments& arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const char* value = i + 1 < count ? words[i + 1] : nullptr;
    if (word == "--ptx") {
      std::fputs(kPtx, stdout);
      std::exit(0);
    }
    if (value == nullptr) return false;
    ++i;
    if (word == "--json") {
      arguments.json = value;
    } else if (word == "--driver") {
      arguments.driver = value;
    } else if (word == "--only") {
      arguments.only = value;
    } else if (word != "--limit" || (arguments.limit = std::atof(value)) <= 0) {
      return false;
    }
  }
  return true;
}

// The file is written anew after each step, so that it is there whatever happens next.
bool WriteFile(const char* path, const std::string& json) {
  if (path == nullptr) return true;
  FILE* file = std::fopen(path, "w");
  if (file == nullptr) return false;
  std::fprintf(file, "{\n%s\n}\n", json.c_str());
  return std::fclose(file) == 0;
}

}  // namespace

int main(int count, char** words) {
  Arguments arguments;
  if (!Parse(count, words, arguments)) {
    std::fprintf(stderr,
                 "usage: %s [--json FILE] [--driver LIBRARY] [--only STEP] [--limit SECONDS] [--ptx]\n",
                 words[0]);
    return 2;
  }
  const auto start = Clock::now();
  bool all_ran = true;
  std::string json;
  for (const Step& step : kSteps) {
    if (arguments.only != nullptr && std::string(arguments.only) != step.name) continue;
    const double left = arguments.limit - Seconds(start);
    Outcome outcome;
    if (left < 1) {
      outcome.status = "timed out";
      outcome.why = "no time was left";
    } else {
      outcome = Run(step, arguments.driver, std::min<double>(step.limit, left));
    }
    all_ran = all_ran && (outcome.status == "ok" || outcome.status == "skipped");
    std::printf("%-14s %-9s %5.1f s  %s\n", step.name, outcome.status.c_str(), outcome.seconds,
                outcome.why.c_str());
    for (const std::string& line : outcome.lines) std::printf("    %s\n", line.c_str());
    std::fflush(stdout);
    json += (json.empty() ? "" : ",\n") + AsJson(step, outcome);
    if (!WriteFile(arguments.json, json)) {
      std::fprintf(stderr, "%s cannot be written\n", arguments.json);
      return 2;
    }
  }
  return all_ran && !json.empty() ? 0 : 1;
}
