#include "tools/emulated_gpu/device/faults.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "tools/emulated_gpu/device/addresses.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/vmm.h"

namespace weir::emulated {
namespace {

struct sigaction before[2];  // SIGSEGV, SIGBUS

void PassOn(int signal, siginfo_t* info, void* context) {
  const struct sigaction& previous = before[signal == SIGBUS ? 1 : 0];
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    ::signal(signal, SIG_DFL);  // the instruction runs again and the process dies of it
  }
}

// Only reads state: the process is about to die, and a lock could be held by this very thread.
void OnFault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (!InDeviceWindow(address)) {
    PassOn(signal, info, context);
    return;
  }
  const AddressFacts facts = DescribeWithoutLock(address);
  const char* op = CurrentOp();
  Report("touch of device memory that is %s: address 0x%lx, reservation 0x%lx + %zu, op %s, thread %ld",
         facts.state, address, facts.reservation, facts.reservation_size, *op == '\0' ? "unknown" : op,
         syscall(SYS_gettid));
  ::signal(signal, SIG_DFL);
}

}  // namespace

void InstallFaultHandler() {
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &before[0]);
  sigaction(SIGBUS, &action, &before[1]);
}

}  // namespace weir::emulated
