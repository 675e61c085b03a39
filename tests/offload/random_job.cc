#include "tests/offload/random_job.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir {

RandomJob::RandomJob(PagerFixture& fixture, uint32_t id, uint64_t seed, Shape shape)
    : fixture_(fixture), id_(id), shape_(shape), random_(seed * 1000 + id) {}

Bytes RandomJob::RandomSize() {
  switch (random_() % 5) {
    case 0:
      return Bytes(1 + random_() % KiB(64).count());
    case 1:
      return kMedium + Bytes(random_() % MiB(2).count());
    default:
      return MiB(4) + Bytes(random_() % (kPageBytes * shape_.largest_pages - MiB(4) + Bytes(1)).count());
  }
}

Lane RandomJob::RandomLane(Stream stream) {
  if (Chance(50)) return stream;
  return Lane(stream, pools_[random_() % 2]);
}

JobTensor* RandomJob::RandomTensor() {
  if (tensors_.empty()) return nullptr;
  return &*std::next(tensors_.begin(), static_cast<ptrdiff_t>(random_() % tensors_.size()));
}

void RandomJob::Run(const std::vector<const JobTensor*>& shared) {
  for (int step = 0; step < shape_.steps; ++step) {
    Step(shared);
    ASSERT_TRUE(!shape_.check_state || fixture_.device->IsValid()) << "step " << step;
    if (::testing::Test::HasFailure()) return;
  }
}

void RandomJob::Step(const std::vector<const JobTensor*>& shared) {
  if (shape_.ends_watch && Chance(5) && fixture_.pager.TryEndWatch(/*if_quiet=*/false)) {
    fixture_.pager.BeginWatch();
    if (Chance(50)) fixture_.pager.ForgetEvidence();
  }
  uint64_t choice = random_() % 20;
  if (choice == 0) {
    fixture_.device->EmptyCache();
    fixture_.pager.Trim();
  } else if (choice == 1) {
    PoolId& pool = pools_[random_() % 2];
    fixture_.device->EndPool(pool);
    pool = fixture_.device->MakePool();
  } else if (choice <= 5 && !tensors_.empty()) {
    Drop(std::next(tensors_.begin(), static_cast<ptrdiff_t>(random_() % tensors_.size())));
  } else {
    Op(shared);
  }
  while (tensors_.size() > shape_.tensors) Drop(tensors_.begin());
}

void RandomJob::BeforeRead(JobTensor& tensor, Stream stream) {
  if (tensor.writer != stream) fixture_.driver.StreamWaitsFor(stream, tensor.writer);
}

void RandomJob::BeforeWrite(JobTensor& tensor, Stream stream) {
  BeforeRead(tensor, stream);
  for (Stream reader : tensor.readers) {
    if (reader != stream) fixture_.driver.StreamWaitsFor(stream, reader);
  }
}

void RandomJob::Used(JobTensor& tensor, Stream stream) {
  if (stream == tensor.home) return;
  if (Chance(60)) {
    fixture_.device->RecordStream(tensor.at, stream);
  } else {
    tensor.unrecorded.insert(stream);
  }
}

// An op: some inputs, perhaps one written in place, perhaps a temporary, perhaps an output, perhaps an op
// inside.
void RandomJob::Op(const std::vector<const JobTensor*>& shared) {
  Stream stream = RandomStream();
  OpScope op(op_, "op");
  std::vector<JobTensor*> inputs;
  std::vector<const Tensor*> touched;
  for (uint64_t i = 0; i < random_() % 3; ++i) {
    JobTensor* input = RandomTensor();
    if (input == nullptr || std::count(inputs.begin(), inputs.end(), input) != 0) continue;
    inputs.push_back(input);
    touched.push_back(input);
  }
  const JobTensor* weight = shared.empty() ? nullptr : shared[random_() % shared.size()];
  if (weight != nullptr) touched.push_back(weight);
  bool write = !inputs.empty() && Chance(40);
  for (JobTensor* input : inputs) BeforeRead(*input, stream);
  if (write) BeforeWrite(*inputs[0], stream);
  if (!fixture_.pager.TouchIfResident(PagerFixture::Requests(touched), op_, stream)) {
    absl::Status status = fixture_.Touch(touched, op_, stream);
    if (!status.ok()) return Refused(status);
  }
  if (Chance(30) && !Temporary(stream)) return;
  if (weight != nullptr) fixture_.Check(weight->at, weight->size, weight->pattern, stream, "a shared tensor");
  for (JobTensor* input : inputs) {
    fixture_.Check(input->at, input->size, input->pattern, stream, "an input");
    input->readers.insert(stream);
  }
  if (write) {
    inputs[0]->pattern = id_ << 24 | ++patterns_;
    fixture_.Write(inputs[0]->at, inputs[0]->size, inputs[0]->pattern, stream);
    inputs[0]->writer = stream;
    inputs[0]->readers.clear();
  }
  for (JobTensor* input : inputs) Used(*input, stream);
  if (Chance(60) && !Output(stream)) return;
  ++done_;
}

// Made, written, read and freed inside one op, or inside an op within it.
bool RandomJob::Temporary(Stream stream) {
  bool nested = Chance(50);
  if (nested) op_.Enter("inner op");
  Bytes size = RandomSize();
  uint32_t pattern = id_ << 24 | ++patterns_;
  absl::StatusOr<DeviceAddr> at = fixture_.device->Allocate(size, RandomLane(stream), op_);
  if (at.ok()) {
    fixture_.Write(*at, size, pattern, stream);
    if (nested) op_.Leave();
    nested = false;
    fixture_.Check(*at, size, pattern, stream, "a temporary");
    EXPECT_TRUE(fixture_.device->Free(*at));
  } else {
    Refused(at.status());
  }
  if (nested) op_.Leave();
  return at.ok();
}

bool RandomJob::Output(Stream stream) {
  JobTensor output;
  output.size = RandomSize();
  output.pattern = id_ << 24 | ++patterns_;
  output.home = output.writer = stream;
  absl::StatusOr<DeviceAddr> at = fixture_.device->Allocate(output.size, RandomLane(stream), op_);
  if (!at.ok()) {
    Refused(at.status());
    return false;
  }
  output.at = *at;
  fixture_.Write(*at, output.size, output.pattern, stream);
  tensors_.push_back(std::move(output));
  return true;
}

// What a user does who runs out of memory: drop something and go on.
void RandomJob::Refused(const absl::Status& status) {
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  ++refused_;
  if (!tensors_.empty()) Drop(tensors_.begin());
}

void RandomJob::Drop(std::list<JobTensor>::iterator tensor) {
  for (Stream stream : tensor->unrecorded) fixture_.driver.StreamWaitsFor(tensor->home, stream);
  EXPECT_TRUE(fixture_.device->Free(tensor->at));
  storages_.push_back(std::move(tensor->storage));
  tensors_.erase(tensor);
}

JobTensor RandomJob::MakeShared(Bytes size) {
  JobTensor tensor;
  static_cast<Tensor&>(tensor) = fixture_.Make(size, id_ << 24 | ++patterns_, RandomStream());
  return tensor;
}

void RandomJob::SeeAll() {
  for (JobTensor& tensor : tensors_) {
    OpScope op(op_, "view");
    fixture_.pager.TouchIfResident(PagerFixture::Requests({&tensor}), op_, tensor.home);
  }
}

void RandomJob::Finish() {
  // Those in VRAM first: what no op has read yet cannot leave, and may leave no room for the others.
  tensors_.sort([&](const JobTensor& a, const JobTensor& b) {
    return fixture_.pager.IsResident(a.at) > fixture_.pager.IsResident(b.at);
  });
  while (!tensors_.empty()) {
    auto tensor = tensors_.begin();
    BeforeRead(*tensor, tensor->home);
    {
      OpScope op(op_, "last look");
      absl::Status status = fixture_.Touch({&*tensor}, op_, tensor->home);
      EXPECT_TRUE(status.ok()) << status;
      if (status.ok())
        fixture_.Check(tensor->at, tensor->size, tensor->pattern, tensor->home, "the last look");
    }
    Drop(tensor);
  }
  fixture_.driver.FinishEverything();
  for (PoolId pool : pools_) fixture_.device->EndPool(pool);
  fixture_.device->EmptyCache();
  fixture_.pager.Trim();
  for (const auto& storage : storages_) EXPECT_EQ(storage->held, 0) << "a storage is still held";
}

}  // namespace weir
