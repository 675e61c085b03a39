// A profiler of three functions, loaded by NVTX through NVTX_INJECTION64_PATH: it writes down what it is
// told. The test finds it by dlopen(RTLD_NOLOAD) and reads fake_nvtx_tool_record().
#include <string>

#include "nvtx3/nvToolsExt.h"
#include "nvtx3/nvToolsExtCuda.h"

namespace {

std::string& Record() {
  static std::string record;
  return record;
}

nvtxDomainHandle_t NVTX_API DomainCreate(const char* name) {
  Record() += std::string("domain ") + name + "\n";
  return reinterpret_cast<nvtxDomainHandle_t>(&Record());
}

// Handles are the texts themselves.
nvtxStringHandle_t NVTX_API RegisterString(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(new std::string(text));
}

int NVTX_API Push(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) {
  const bool expected = event->messageType == NVTX_MESSAGE_TYPE_REGISTERED &&
                        event->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  Record() += expected ? "push " + *reinterpret_cast<std::string*>(event->message.registered) + " " +
                             std::to_string(event->payload.ullValue) + "\n"
                       : "push of another form\n";
  return 0;
}

int NVTX_API Pop(nvtxDomainHandle_t) {
  Record() += "pop\n";
  return 0;
}

void NVTX_API NameThread(uint32_t, const char* name) { Record() += std::string("thread ") + name + "\n"; }

void NVTX_API NameStream(CUstream stream, const char* name) {
  Record() += "stream " + std::to_string(reinterpret_cast<uintptr_t>(stream)) + " " + name + "\n";
}

template <typename Function>
void Install(NvtxFunctionTable table, unsigned size, unsigned index, Function* function) {
  if (index < size) *table[index] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED const char* fake_nvtx_tool_record() { return Record().c_str(); }

EXPORTED int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr) return 0;
  NvtxFunctionTable table;
  unsigned size = 0;
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  Install(table, size, NVTX_CBID_CORE2_DomainCreateA, DomainCreate);
  Install(table, size, NVTX_CBID_CORE2_DomainRegisterStringA, RegisterString);
  Install(table, size, NVTX_CBID_CORE2_DomainRangePushEx, Push);
  Install(table, size, NVTX_CBID_CORE2_DomainRangePop, Pop);
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size)) return 0;
  Install(table, size, NVTX_CBID_CORE_NameOsThreadA, NameThread);
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CUDA, &table, &size)) return 0;
  Install(table, size, NVTX_CBID_CUDA_NameCuStreamA, NameStream);
  return 1;
}
