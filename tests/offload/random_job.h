// A random job against the real allocator and pager: ops on several streams that read, write, make and free
// tensors, some of them in pools that come and go, with every byte known. What a correct PyTorch program does to order its streams, the job does;
// whatever goes wrong after that is Weir's. Everything is decided by the seed; one job is driven by one
// thread.
#ifndef WEIR_TESTS_OFFLOAD_RANDOM_JOB_H_
#define WEIR_TESTS_OFFLOAD_RANDOM_JOB_H_

#include <list>
#include <random>
#include <set>
#include <vector>

#include "tests/offload/pager_fixture.h"

namespace weir {

struct JobTensor : Tensor {
  Stream home;                  // of its allocation
  Stream writer;                // of its last write
  std::set<Stream> readers;     // since that write
  std::set<Stream> unrecorded;  // other streams that used it and were not told by RecordStream
};

class RandomJob {
 public:
  struct Shape {
    int steps = 100;
    uint64_t largest_pages = 3;  // of a tensor
    uint64_t tensors = 12;       // live at most
    bool check_state = true;     // IsValid() after each step; only with one job at a time
    bool ends_watch = false;     // ends watching now and then where it may end, and begins it again
  };
  // `id` keeps jobs apart: patterns and streams are its own.
  RandomJob(PagerFixture& fixture, uint32_t id, uint64_t seed, Shape shape);

  // `shared`: tensors that all jobs read, and nobody writes or frees.
  void Run(const std::vector<const JobTensor*>& shared);
  // What is in VRAM and was no op's input yet becomes one, so that it may leave for what comes back in Finish().
  void SeeAll();
  // Reads every live tensor back, then frees it.
  void Finish();

  int refused() const { return refused_; }  // steps that ran out of memory
  int done() const { return done_; }
  OpPins& op() { return op_; }
  JobTensor MakeShared(Bytes size);

 private:
  Bytes RandomSize();
  Stream RandomStream() { return Stream(100 * uintptr_t{id_} + 1 + random_() % 3); }
  // Of the general heap, or of one of the job's pools.
  Lane RandomLane(Stream stream);
  JobTensor* RandomTensor();
  bool Chance(int percent) { return random_() % 100 < static_cast<uint64_t>(percent); }

  void Step(const std::vector<const JobTensor*>& shared);
  void Op(const std::vector<const JobTensor*>& shared);
  bool Temporary(Stream stream);
  bool Output(Stream stream);
  void BeforeRead(JobTensor& tensor, Stream stream);
  void BeforeWrite(JobTensor& tensor, Stream stream);
  void Used(JobTensor& tensor, Stream stream);
  void Drop(std::list<JobTensor>::iterator tensor);
  void Refused(const absl::Status& status);

  PagerFixture& fixture_;
  const uint32_t id_;
  const Shape shape_;
  std::mt19937_64 random_;
  OpPins op_;
  std::list<JobTensor> tensors_;
  PoolId pools_[2];                                     // the general heap: none yet
  std::vector<std::unique_ptr<FakeStorage>> storages_;  // of freed tensors: a deferred free still names them
  uint32_t patterns_ = 0;
  int refused_ = 0, done_ = 0;
};

}  // namespace weir

#endif  // WEIR_TESTS_OFFLOAD_RANDOM_JOB_H_
