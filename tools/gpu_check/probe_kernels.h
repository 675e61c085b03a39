// Part of probe.cc: three small kernels as PTX, which the driver compiles for the card it finds.
#ifndef WEIR_GPU_CHECK_PROBE_KERNELS_H_
#define WEIR_GPU_CHECK_PROBE_KERNELS_H_

#include <cstring>

#include "probe_driver.h"

namespace {

// wait_flag runs until *flag is not 0 or `limit` ns have passed; fill and count work on 32-bit words.
constexpr char kPtx[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry wait_flag(.param .u64 flag, .param .u64 started, .param .u64 limit) {
  .reg .pred %p<3>; .reg .u32 %r<3>; .reg .u64 %d<7>;
  ld.param.u64 %d1, [flag]; ld.param.u64 %d2, [started]; ld.param.u64 %d3, [limit];
  mov.u32 %r1, 1; st.volatile.global.u32 [%d2], %r1; membar.sys;
  mov.u64 %d4, %globaltimer;
again: ld.volatile.global.u32 %r2, [%d1]; setp.ne.u32 %p1, %r2, 0; @%p1 bra done;
  mov.u64 %d5, %globaltimer; sub.u64 %d6, %d5, %d4; setp.lt.u64 %p2, %d6, %d3; @%p2 bra again;
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
.visible .entry count_other(.param .u64 from, .param .u32 value, .param .u64 words, .param .u64 count) {
  .reg .pred %p<3>; .reg .u32 %r<7>; .reg .u64 %d<8>;
  ld.param.u64 %d1, [from]; ld.param.u32 %r1, [value]; ld.param.u64 %d2, [words]; ld.param.u64 %d7, [count];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
  cvt.u64.u32 %d3, %r5; mov.u32 %r2, %nctaid.x; mul.wide.u32 %d4, %r2, %r3;
again: setp.ge.u64 %p1, %d3, %d2; @%p1 bra done;
  shl.b64 %d5, %d3, 2; add.u64 %d6, %d1, %d5; ld.global.u32 %r6, [%d6]; add.u64 %d3, %d3, %d4;
  setp.eq.u32 %p2, %r6, %r1; @%p2 bra again;
  mov.u32 %r6, 1; red.global.add.u32 [%d7], %r6; bra again;
done: ret;
}
)";

class Kernels {
 public:
  // Proves that a kernel's write arrives; Skip where none runs.
  Kernels() {
    void* module = nullptr;
    if (cu.LoadModule(&module, kPtx) != 0 || cu.GetFunction(&wait_, module, "wait_flag") != 0 ||
        cu.GetFunction(&fill_, module, "fill") != 0 || cu.GetFunction(&count_, module, "count_other") != 0) {
      throw Skip("needs kernels, and the driver takes no PTX of sm_75");
    }
    flag_ = Pinned(4096);
    counter_ = NewRange(2 * kMiB);
    Ptr to = counter_;
    unsigned value = 77;
    unsigned long long words = 1;
    void* arguments[] = {&to, &value, &words};
    if (cu.Launch(fill_, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr) != 0 || Count() != 77) {
      throw Skip("needs kernels, and this device runs none");
    }
    MUST(Memset(counter_, 0, 1, nullptr));
    MUST(Synchronize());
  }
  void Fill(Ptr to, unsigned value, size_t bytes, Stream stream, unsigned blocks = 256) {
    unsigned long long words = bytes / 4;
    void* arguments[] = {&to, &value, &words};
    MUST(Launch(fill_, blocks, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
  }
  // Adds the number of words that differ from `value` to what Count() gives.
  void CountOther(Ptr from, unsigned value, size_t bytes, Stream stream) {
    unsigned long long words = bytes / 4;
    void* arguments[] = {&from, &value, &words, &counter_};
    MUST(Launch(count_, 256, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
  }
  unsigned Count() {
    MUST(ToHost(flag_ + 2, counter_, 4, nullptr));
    MUST(Synchronize());
    return flag_[2];
  }
  // A kernel that holds `stream` until Open(), 2 s at most; returns when it runs.
  void Hold(Stream stream) {
    std::memset(flag_, 0, 8);
    void *flag = flag_, *started = flag_ + 1;
    unsigned long long limit = 2000000000;
    void* arguments[] = {&flag, &started, &limit};
    MUST(Launch(wait_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
    const auto start = Clock::now();
    while (__atomic_load_n(flag_ + 1, __ATOMIC_ACQUIRE) == 0) {
      if (Seconds(start) > 5) throw std::runtime_error("a kernel did not start within 5 s");
    }
  }
  void Open() { __atomic_store_n(flag_, 1u, __ATOMIC_RELEASE); }

 private:
  void *wait_ = nullptr, *fill_ = nullptr, *count_ = nullptr;
  unsigned* flag_ = nullptr;  // [0] open, [1] started, [2] copy of the counter
  Ptr counter_ = 0;
};

}  // namespace

#endif
