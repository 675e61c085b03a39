#include "tools/emulated_gpu/device/contexts.h"

#include <atomic>

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/attributes.h"
#include "tools/emulated_gpu/device/profile.h"

namespace weir::emulated {
namespace {

struct Primary {  // its address is the handle
  std::atomic<int> references{0};
  std::atomic<bool> active{false};
  std::atomic<uint32_t> peers{0};  // a bit per device whose memory it may reach
};
Primary primaries[kMostDevices];
thread_local CUcontext current = nullptr;

uint32_t Bit(int device) { return 1u << device; }

void SetActive(int device, bool active) {
  if (primaries[device].active.exchange(active) == active) return;
  NoteContext(PhysicalDevice(device), active);
  if (!active) primaries[device].peers = 0;  // its state goes with it
}

}  // namespace

int DeviceCount() { return static_cast<int>(Settings().visible.size()); }
bool IsDevice(int device) { return device >= 0 && device < DeviceCount(); }
int PhysicalDevice(int device) { return Settings().visible[static_cast<size_t>(device)]; }

CUcontext PrimaryContext(int device) { return reinterpret_cast<CUcontext>(&primaries[device]); }

int DeviceOfContext(CUcontext context) {
  for (int device = 0; device < DeviceCount(); ++device) {
    if (context == PrimaryContext(device)) return device;
  }
  return -1;
}

bool PrimaryActive(int device) { return primaries[device].active; }

void RetainPrimary(int device) {
  ++primaries[device].references;
  SetActive(device, true);
}

void ReleasePrimary(int device) {
  if (primaries[device].references > 0 && --primaries[device].references == 0) SetActive(device, false);
}

void ActivatePrimary(int device) {
  if (!primaries[device].active.load(std::memory_order_relaxed)) SetActive(device, true);
}

CUcontext Current() { return current; }
void SetCurrent(CUcontext context) { current = context; }

int CurrentDevice() {
  return current == nullptr ? 0 : static_cast<int>(reinterpret_cast<Primary*>(current) - primaries);
}

bool CanAccessPeer(int device, int peer) { return device != peer && HasPeers(); }

Status EnablePeer(int device, int peer) {
  if (device == peer) return CUDA_ERROR_INVALID_DEVICE;
  if (!CanAccessPeer(device, peer)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  const bool already = (primaries[device].peers.fetch_or(Bit(peer)) & Bit(peer)) != 0;
  return already ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
}

Status DisablePeer(int device, int peer) {
  const bool was = (primaries[device].peers.fetch_and(~Bit(peer)) & Bit(peer)) != 0;
  return was ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

bool PeerEnabled(int device, int peer) { return (primaries[device].peers & Bit(peer)) != 0; }

Status PeerAttribute(int* value, CUdevice_P2PAttribute attribute, int device, int peer) {
  if (!IsDevice(device) || !IsDevice(peer) || device == peer) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
      *value = CanAccessPeer(device, peer) ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace weir::emulated
