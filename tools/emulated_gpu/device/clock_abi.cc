#include "tools/emulated_gpu/device/clock_abi.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "tools/emulated_gpu/device/lifecycle.h"
#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/timing.h"

using namespace weir::emulated;

#define WEIR_EXPORTED extern "C" __attribute__((visibility("default")))

WEIR_EXPORTED int64_t weir_emulated_now_ns() { return Ready() == CUDA_SUCCESS ? HostNow() : 0; }

WEIR_EXPORTED void weir_emulated_charge(int kind, uint64_t count) {
  if (Ready() != CUDA_SUCCESS) return;
  const Costs& costs = Settings().profile->costs;
  const double each[] = {costs.weir_op_us,
                         std::max(costs.weir_malloc_us - costs.torch_malloc_us, 0.0),
                         std::max(costs.weir_free_us - costs.torch_free_us, 0.0),
                         costs.weir_page_in_us,
                         costs.weir_plan_us,
                         costs.weir_mapper_us,
                         costs.weir_event_us,
                         costs.weir_touch_us,
                         costs.weir_candidate_us};
  static_assert(std::size(each) == WEIR_CHARGE_NANOSECONDS);
  if (kind == WEIR_CHARGE_NANOSECONDS) {
    ChargeHost(static_cast<Nanos>(count), Busy::kWeir);
  } else if (kind >= 0 && kind < WEIR_CHARGE_NANOSECONDS) {
    ChargeHost(Micros(static_cast<double>(count) * each[kind]), Busy::kWeir);
  }
}

WEIR_EXPORTED void weir_emulated_wait_until(int64_t time) {
  if (Ready() == CUDA_SUCCESS) HostWaits(time, Wait::kTime);
}

WEIR_EXPORTED int64_t weir_emulated_switch_ns(int64_t time) {
  return Ready() == CUDA_SUCCESS ? SwitchHostTime(time) : 0;
}

WEIR_EXPORTED int64_t weir_emulated_nvme(int write, uint64_t bytes) {
  if (Ready() != CUDA_SUCCESS) return 0;
  const Costs& costs = Settings().profile->costs;
  const Nanos moving =
      TimeFor(static_cast<double>(bytes), write != 0 ? costs.nvme_write_gbps : costs.nvme_read_gbps);
  std::lock_guard<std::mutex> lock(Order().mutex);
  return RunForHostLocked(Engine::kNvme, moving) + Micros(costs.nvme_us);
}

WEIR_EXPORTED void weir_emulated_usage(WeirEmulatedUsage* usage) {
  *usage = {};
  if (Ready() != CUDA_SUCCESS) return;
  FinishOps();
  const StepTimes steps = TimesOfSteps();
  std::lock_guard<std::mutex> lock(Order().mutex);
  const Usage used = UsageLocked();
  const auto busy = [&](Engine engine) { return used.busy[static_cast<size_t>(engine)]; };
  usage->done = LatestDoneLocked();
  usage->sms = busy(Engine::kMultiprocessors);
  usage->copy_in = busy(Engine::kCopyIn);
  usage->copy_out = busy(Engine::kCopyOut);
  usage->mapper = busy(Engine::kMapper);
  usage->nvme = busy(Engine::kNvme);
  usage->sms_idle_for_host = used.idle_for_host;
  usage->sms_idle_for_others = used.idle_for_others;
  for (size_t i = 0; i < kWaits; ++i) usage->host_blocked += Waited(static_cast<Wait>(i));
  usage->host_weir = Worked(Busy::kWeir);
  usage->steps = static_cast<int64_t>(steps.count);
  usage->step = steps.median;
}
