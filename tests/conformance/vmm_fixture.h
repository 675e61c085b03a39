// Reservations, frames and mappings of one test; what is left of them is taken down at its end.
#ifndef WEIR_TESTS_CONFORMANCE_VMM_FIXTURE_H_
#define WEIR_TESTS_CONFORMANCE_VMM_FIXTURE_H_

#include <map>
#include <vector>

#include "tests/conformance/device_under_test.h"

namespace weir::conformance {

using Frame = CUmemGenericAllocationHandle;

class Vmm : public Device {
 protected:
  void SetUp() override;
  void TearDown() override;

  static CUmemAllocationProp Properties();
  static CUresult SetAccess(CUdeviceptr address, size_t size, CUmemAccess_flags flags);

  CUdeviceptr Reserve(size_t size);
  Frame Create(size_t size);
  void Map(CUdeviceptr address, size_t size, Frame frame);           // without access
  void MapReadWrite(CUdeviceptr address, size_t size, Frame frame);  // with access
  void Unmap(CUdeviceptr address, size_t size);                      // of whole mappings
  void Release(Frame frame);
  static size_t FreeBytes();  // of the device, as cuMemGetInfo tells

  size_t unit_ = 0;  // the minimum granularity

 private:
  std::map<CUdeviceptr, size_t> reservations_, mappings_;
  std::vector<Frame> frames_;
};

}  // namespace weir::conformance

#endif
