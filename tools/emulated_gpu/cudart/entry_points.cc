// The driver's entry points by name, and the names that are refused on purpose.
#include "tools/emulated_gpu/cudart/cudart.h"
#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int,
                                             unsigned long long, cudaDriverEntryPointQueryResult* result) {
  WEIR_CUDART_FAULT_POINT();
  if (symbol == nullptr || function == nullptr) return Last(cudaErrorInvalidValue);
  *function = FindDriverFunction(symbol);
  if (result != nullptr) {
    *result = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  return cudaSuccess;
}
