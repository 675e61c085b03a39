#include "tests/conformance/kernels.h"

namespace weir::conformance {

const char kPtx[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry hold(.param .u64 flag, .param .u64 limit) {
  .reg .pred %p<3>; .reg .u32 %r<2>; .reg .u64 %d<6>;
  ld.param.u64 %d1, [flag]; ld.param.u64 %d2, [limit]; mov.u64 %d3, %globaltimer;
again: ld.volatile.global.u32 %r1, [%d1]; setp.ne.u32 %p1, %r1, 0; @%p1 bra done;
  mov.u64 %d4, %globaltimer; sub.u64 %d5, %d4, %d3; setp.lt.u64 %p2, %d5, %d2; @%p2 bra again;
done: ret;
}
.visible .entry fill(.param .u64 to, .param .u32 value, .param .u64 words) {
  .reg .pred %p<2>; .reg .u32 %r<6>; .reg .u64 %d<7>;
  ld.param.u64 %d1, [to]; ld.param.u32 %r1, [value]; ld.param.u64 %d2, [words];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
  cvt.u64.u32 %d3, %r5; mov.u32 %r2, %nctaid.x; mul.wide.u32 %d4, %r2, %r3;
again: setp.ge.u64 %p1, %d3, %d2; @%p1 bra done;
  shl.b64 %d5, %d3, 2; add.u64 %d6, %d1, %d5; st.global.u32 [%d6], %r1; add.u64 %d3, %d3, %d4; bra again;
done: ret;
}
)";

CUresult Load(Kernels* kernels) {
  CUresult status = CU(cuModuleLoadData)(&kernels->module, kPtx);
  if (status == CUDA_SUCCESS) status = CU(cuModuleGetFunction)(&kernels->hold, kernels->module, "hold");
  if (status == CUDA_SUCCESS) status = CU(cuModuleGetFunction)(&kernels->fill, kernels->module, "fill");
  return status;
}

CUresult Hold(const Kernels& kernels, uint32_t* pinned_flag, CUstream stream) {
  unsigned long long limit = 2000000000;
  void* arguments[] = {&pinned_flag, &limit};
  return CU(cuLaunchKernel)(kernels.hold, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

CUresult Fill(const Kernels& kernels, CUdeviceptr to, uint32_t value, size_t words, CUstream stream) {
  unsigned long long count = words;
  void* arguments[] = {&to, &value, &count};
  return CU(cuLaunchKernel)(kernels.fill, 64, 1, 1, 128, 1, 1, 0, stream, arguments, nullptr);
}

}  // namespace weir::conformance
