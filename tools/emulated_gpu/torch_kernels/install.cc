// Entry point of this library, called once by the emulator before CUDA starts, on the thread of the first
// device count. The dispatch table is read without a lock by running ops, so nothing is registered later
// (correctness R7).
#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "tools/emulated_gpu/torch_kernels/attention.h"
#include "tools/emulated_gpu/torch_kernels/boxed.h"
#include "tools/emulated_gpu/torch_kernels/cuda_only.h"
#include "tools/emulated_gpu/torch_kernels/host.h"
#include "tools/emulated_gpu/torch_kernels/known_values.h"
#include "tools/emulated_gpu/torch_kernels/observer.h"
#include "tools/emulated_gpu/torch_kernels/skipped_init.h"
#include "tools/emulated_gpu/torch_kernels/treatment.h"

namespace weir::emulated {
namespace {

const WeirEmulatedHost* host_table = nullptr;

// Replacing a kernel warns for each of 1500 ops; here it is meant.
class SilentWarnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

using Boxed = void(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*);

template <Boxed* function>
void Register(torch::Library& library, const std::string& name) {
  library.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<function>());
}

void RegisterAll(torch::Library& library, c10::DispatchKey cuda, c10::DispatchKey cpu) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) continue;
    const auto op = dispatcher.findOp(name);
    if (!op.has_value() || !op->hasSchema() || !op->hasKernelForDispatchKey(cuda)) continue;
    const std::string full = toString(name);
    switch (TreatmentOf(full, cuda, op->hasComputedKernelForDispatchKey(cpu))) {
      case Treatment::kOnCpu:
        Register<&RunOnCpu>(library, full);
        break;
      case Treatment::kRefuse:
        Register<&RefuseByName>(library, full);
        break;
      case Treatment::kOriginal:
      case Treatment::kWritten:
        break;
    }
  }
}

torch::Library& NewLibrary(c10::DispatchKey key) {
  return *new torch::Library(torch::Library::IMPL, "aten", key, __FILE__,
                             __LINE__);  // lives as long as the process
}

void RegisterKernels() {
  SilentWarnings silent;
  c10::WarningUtils::WarningHandlerGuard guard(&silent);
  KeepOriginalCopy();
  torch::Library& cuda = NewLibrary(c10::DispatchKey::CUDA);
  RegisterAll(cuda, c10::DispatchKey::CUDA, c10::DispatchKey::CPU);
  RegisterAll(NewLibrary(c10::DispatchKey::SparseCUDA), c10::DispatchKey::SparseCUDA,
              c10::DispatchKey::SparseCPU);
  RegisterAll(NewLibrary(c10::DispatchKey::SparseCsrCUDA), c10::DispatchKey::SparseCsrCUDA,
              c10::DispatchKey::SparseCsrCPU);
  Register<&CopyOnCpu>(cuda, "aten::copy_");
  for (const char* name : kComposedOnCpu) Register<&RunOnCpu>(cuda, name);
  torch::Library& autograd = NewLibrary(c10::DispatchKey::AutogradCUDA);
  for (const char* name : kCompositeOnCpu) {
    Register<&RunComposite>(cuda, name);
    Register<&RunComposite>(autograd, name);
  }
  RegisterCudaOnly(cuda);
  ChooseAttentionAsCpu();
}

}  // namespace

const WeirEmulatedHost& Host() { return *host_table; }

}  // namespace weir::emulated

extern "C" __attribute__((visibility("default"))) int weir_emulated_import(const WeirEmulatedHost* host) {
  if (host->version != 8) return 1;
  weir::emulated::host_table = host;
  weir::emulated::SilentWarnings silent;
  c10::WarningUtils::WarningHandlerGuard guard(&silent);
  weir::emulated::SkipInitialisation();
  return 0;
}

extern "C" __attribute__((visibility("default"))) int weir_emulated_install(const WeirEmulatedHost* host) {
  if (host->version != 8) return 1;
  weir::emulated::host_table = host;
  if (host->cpu_kernels != 0) {
    // The CPU has no cuDNN: ops compose as they do there.
    at::globalContext().setUserEnabledCuDNN(false);
    at::globalContext().setSDPUseCuDNN(false);
    weir::emulated::RegisterKernels();
    weir::emulated::ObserveHostTime();
  }
  if (host->observe_ops != 0) {
    weir::emulated::SilentWarnings silent;
    c10::WarningUtils::WarningHandlerGuard guard(&silent);
    weir::emulated::ComputeKnownValues();
    weir::emulated::ObserveOps();
  }
  weir::emulated::ObserveSteps();
  return 0;
}
