#include "tests/conformance/not_emulated.h"

#include "tests/conformance/kernels.h"

namespace weir::conformance {
namespace {

CUresult CreateFrame(CUmemLocationType location, CUmemAllocationHandleType exported,
                     CUmemGenericAllocationHandle* frame) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = location;
  properties.requestedHandleTypes = exported;
  return CU(cuMemCreate)(frame, 2 * kMiB, &properties, 0);
}

CUresult LaunchAKernel() {
  Kernels kernels;
  const CUresult status = Load(&kernels);
  return status != CUDA_SUCCESS ? status : Fill(kernels, 0, 0, 0, nullptr);
}

CUresult Export() {
  CUmemGenericAllocationHandle frame = 0;
  EXPECT_CU(CreateFrame(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, &frame));
  int descriptor = -1;
  const CUresult status =
      CU(cuMemExportToShareableHandle)(&descriptor, frame, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  EXPECT_CU(CU(cuMemRelease)(frame));
  return status;
}

}  // namespace

const std::vector<NotEmulated>& AllNotEmulated() {
  static const auto& all = *new std::vector<NotEmulated>{
      {Lacks::kKernels, "Kernels", "the emulated GPU runs no kernels: torch's operators run on the CPU",
       LaunchAKernel},
      {Lacks::kHostFrames, "HostFrames", "the emulated GPU has no frames of host memory",
       [] {
         CUmemGenericAllocationHandle frame = 0;
         return CreateFrame(CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_HANDLE_TYPE_NONE, &frame);
       }},
      {Lacks::kExport, "Export", "the emulated GPU is of one process", Export},
      {Lacks::kManaged, "Managed", "the emulated GPU has no managed memory",
       [] {
         CUdeviceptr address = 0;
         return CU(cuMemAllocManaged)(&address, 4096, CU_MEM_ATTACH_GLOBAL);
       }},
      {Lacks::kIpc, "Ipc", "the emulated GPU is of one process",
       [] {
         CUdeviceptr address = 0;
         CUipcMemHandle handle;
         EXPECT_CU(CU(cuMemAlloc)(&address, 4096));
         const CUresult status = CU(cuIpcGetMemHandle)(&handle, address);
         EXPECT_CU(CU(cuMemFree)(address));
         return status;
       }},
      {Lacks::kContexts, "Contexts", "the emulated GPU has the primary context alone",
       [] {
         CUcontext context = nullptr;
         return CU(cuCtxCreate)(&context, nullptr, 0, 0);
       }},
      {Lacks::kReset, "Reset", "the emulated GPU's primary context is not reset",
       [] { return CU(cuDevicePrimaryCtxReset)(0); }},
  };
  return all;
}

const char* WhyNotEmulated(Lacks what) {
  for (const NotEmulated& entry : AllNotEmulated()) {
    if (entry.what == what) return entry.reason;
  }
  return "";
}

}  // namespace weir::conformance
