// Products of low-precision matrices with a wider result type (mm.dtype and relatives).
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <torch/library.h>

#include "tools/emulated_gpu/torch_kernels/cuda_only.h"

namespace weir::emulated {
namespace {

using at::Tensor;
using c10::Scalar;
using c10::ScalarType;

Tensor Mm(const Tensor& a, const Tensor& b, ScalarType type) { return at::mm(a.to(type), b.to(type)); }
Tensor Bmm(const Tensor& a, const Tensor& b, ScalarType type) { return at::bmm(a.to(type), b.to(type)); }

Tensor Addmm(const Tensor& added, const Tensor& a, const Tensor& b, ScalarType type, const Scalar& beta,
             const Scalar& alpha) {
  return at::addmm(added.to(type), a.to(type), b.to(type), beta, alpha);
}
Tensor Baddbmm(const Tensor& added, const Tensor& a, const Tensor& b, ScalarType type, const Scalar& beta,
               const Scalar& alpha) {
  return at::baddbmm(added.to(type), a.to(type), b.to(type), beta, alpha);
}

Tensor& Into(Tensor& out, const Tensor& result) {
  out.resize_(result.sizes());
  return out.copy_(result);
}

Tensor& MmOut(const Tensor& a, const Tensor& b, ScalarType type, Tensor& out) {
  return Into(out, Mm(a, b, type));
}
Tensor& BmmOut(const Tensor& a, const Tensor& b, ScalarType type, Tensor& out) {
  return Into(out, Bmm(a, b, type));
}
Tensor& AddmmOut(const Tensor& added, const Tensor& a, const Tensor& b, ScalarType type, const Scalar& beta,
                 const Scalar& alpha, Tensor& out) {
  return Into(out, Addmm(added, a, b, type, beta, alpha));
}
Tensor& BaddbmmOut(const Tensor& added, const Tensor& a, const Tensor& b, ScalarType type, const Scalar& beta,
                   const Scalar& alpha, Tensor& out) {
  return Into(out, Baddbmm(added, a, b, type, beta, alpha));
}

}  // namespace

void RegisterMixedPrecisionProducts(torch::Library& cuda) {
  cuda.impl("mm.dtype", TORCH_FN(Mm));
  cuda.impl("mm.dtype_out", TORCH_FN(MmOut));
  cuda.impl("bmm.dtype", TORCH_FN(Bmm));
  cuda.impl("bmm.dtype_out", TORCH_FN(BmmOut));
  cuda.impl("addmm.dtype", TORCH_FN(Addmm));
  cuda.impl("addmm.dtype_out", TORCH_FN(AddmmOut));
  cuda.impl("baddbmm.dtype", TORCH_FN(Baddbmm));
  cuda.impl("baddbmm.dtype_out", TORCH_FN(BaddbmmOut));
}

}  // namespace weir::emulated
