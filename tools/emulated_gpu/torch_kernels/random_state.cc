#include "tools/emulated_gpu/torch_kernels/random_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "tools/emulated_gpu/torch_kernels/devices.h"

namespace weir::emulated {
namespace {

constexpr size_t kRemembered =
    1024;  // states of 5 KB each per generator, enough for recomputing a model's layers
constexpr uint64_t kOffsetStep = 4;  // a Philox offset is a multiple of 4 (CUDAGeneratorImpl)

struct Point {
  uint64_t seed, offset;
  bool operator==(const Point& other) const { return seed == other.seed && offset == other.offset; }
};

struct Follower {
  std::optional<Point> next;         // where the CUDA generator is if nobody touched it since the last draw
  std::optional<at::Generator> own;  // none: follows the default CPU generator
  at::Tensor default_after;          // the default CPU generator's state after the last draw
  std::deque<std::pair<Point, at::Tensor>> past;
};

std::mutex mutex;
// Guarded by mutex. Keyed by address: a generator that died and one that took its place differ in (seed,
// offset) or start at offset 0, which seeds anew.
auto& followers = *new std::map<c10::GeneratorImpl*, Follower>;

Point Where(const at::Generator& device) { return {device.current_seed(), device.get_offset()}; }

const at::Tensor* StateAt(const Follower& follower, const Point& point) {
  for (auto known = follower.past.rbegin(); known != follower.past.rend(); ++known) {
    if (known->first == point) return &known->second;
  }
  return nullptr;
}

bool SameBytes(const at::Tensor& one, const at::Tensor& other) {
  return one.numel() == other.numel() &&
         std::memcmp(one.const_data_ptr(), other.const_data_ptr(), one.numel()) == 0;
}

at::Generator Detached(const Point& point, const at::Tensor* state) {
  // A point nobody has seen gets numbers of its own, the same in every process.
  at::Generator own = at::detail::createCPUGenerator(point.seed + point.offset * 0x9E3779B97F4A7C15ull);
  if (state != nullptr) own.set_state(*state);
  return own;
}

// Whether the default CPU generator was seeded or restored together with the default CUDA one, now at
// `point`.
bool MovedTogether(const Follower& follower, const Point& point, const at::Tensor* state) {
  const at::Generator& cpu = at::detail::getDefaultCPUGenerator();
  const at::Tensor now = cpu.get_state();
  if (state != nullptr && SameBytes(*state, now)) return true;  // both restored, as by torch.utils.checkpoint
  if (follower.default_after.defined() && SameBytes(follower.default_after, now))
    return false;                           // only CUDA's was
  return point.seed == cpu.current_seed();  // torch.manual_seed
}

// The CUDA generator was seeded or restored since the last draw.
void Restart(Follower& follower, const Point& point, bool is_default) {
  const at::Tensor* state = StateAt(follower, point);
  if (is_default && MovedTogether(follower, point, state)) {
    follower.own.reset();
    return;
  }
  follower.own = Detached(point, state);
}

}  // namespace

Drawing::Drawing(const std::optional<at::Generator>& device) {
  const at::Generator& default_device = at::globalContext().defaultGenerator(CurrentDevice());
  TORCH_CHECK(!device.has_value() || !device->defined() || device->device().is_cuda(),
              "Expected a 'cuda' device type for generator but found '", device->device().type(), "'");
  device_ = device.has_value() && device->defined() ? *device : default_device;
  const bool is_default = device_ == default_device;
  std::lock_guard<std::mutex> lock(mutex);
  Follower& follower = followers[device_.unsafeGetGeneratorImpl()];
  const Point point = Where(device_);
  if (!follower.next.has_value() || !(*follower.next == point)) Restart(follower, point, is_default);
  const at::Generator& cpu = at::detail::getDefaultCPUGenerator();
  follower.past.emplace_back(point, (follower.own.has_value() ? *follower.own : cpu).get_state());
  if (follower.past.size() > kRemembered) follower.past.pop_front();
  if (!follower.own.has_value()) return;
  host_ = follower.own;
  // Ops without a generator argument draw from the default CPU generator: it plays the part for this op.
  default_before_ = cpu.get_state();
  at::Generator(cpu).set_state(follower.own->get_state());
  if (is_default) host_.reset();
}

Drawing::~Drawing() {
  if (!device_.defined()) return;
  std::lock_guard<std::mutex> lock(mutex);
  Follower& follower = followers[device_.unsafeGetGeneratorImpl()];
  if (default_before_.has_value()) {
    at::Generator cpu = at::detail::getDefaultCPUGenerator();
    if (!host_.has_value()) follower.own->set_state(cpu.get_state());
    cpu.set_state(*default_before_);
  }
  follower.default_after = at::detail::getDefaultCPUGenerator().get_state();
  const Point point = Where(device_);
  device_.set_offset(point.offset + kOffsetStep);
  follower.next = Where(device_);
}

}  // namespace weir::emulated
