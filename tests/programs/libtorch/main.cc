// A training program in C++: a perceptron with AdamW on device `cuda`, no Python in the process, nothing of
// Weir. Prints the same JSON line as the Python programs (see common.py): digest, losses,
// peak_allocated_bytes. Usage: libtorch_training [cpu]. The digest is XXH3-128 over the bits of losses,
// weights and optimizer state.
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/torch.h>
#include <xxhash.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr int64_t kWidth = 1024;  // 4 MiB a layer in float32
constexpr int64_t kBatch = 512;   // 2 MiB an activation
constexpr int kSteps = 4;

torch::nn::Sequential MakeModel() {
  torch::nn::Sequential model;
  for (int layer = 0; layer < 5; ++layer) {
    model->push_back(torch::nn::Linear(kWidth, kWidth));
    model->push_back(torch::nn::GELU());
  }
  return model;
}

class Digest {
 public:
  Digest() : state_(XXH3_createState()) { XXH3_128bits_reset(state_); }
  ~Digest() { XXH3_freeState(state_); }
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void Add(const torch::Tensor& tensor) {
    const torch::Tensor host = tensor.detach().cpu().contiguous();
    XXH3_128bits_update(state_, host.const_data_ptr(), host.nbytes());
  }

  std::string Hex() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_);
    char text[33];
    std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                  static_cast<unsigned long long>(hash.low64));
    return text;
  }

 private:
  XXH3_state_t* state_;
};

std::vector<double> Train(torch::nn::Sequential& model, torch::optim::AdamW& optimizer, torch::Device device,
                          Digest& digest) {
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const torch::Tensor x = torch::randn({kBatch, kWidth}).to(device);
    const torch::Tensor loss = torch::mse_loss(model->forward(x), x.roll(1, 1));
    optimizer.zero_grad();
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    digest.Add(loss);
    losses.push_back(loss.item<double>());
  }
  return losses;
}

void AddState(Digest& digest, torch::nn::Sequential& model, torch::optim::AdamW& optimizer) {
  for (const torch::Tensor& parameter : model->parameters()) {
    digest.Add(parameter);
    const auto& state = static_cast<const torch::optim::AdamWParamState&>(
        *optimizer.state().at(parameter.unsafeGetTensorImpl()));
    digest.Add(state.exp_avg());
    digest.Add(state.exp_avg_sq());
  }
}

int64_t PeakAllocatedBytes() {
  using c10::CachingAllocator::StatType;
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(0);
  return stats.allocated_bytes[static_cast<size_t>(StatType::AGGREGATE)].peak;
}

}  // namespace

int main(int argc, char** argv) {
  const bool on_cpu = argc > 1 && std::string(argv[1]) == "cpu";
  const torch::Device device(on_cpu ? torch::kCPU : torch::kCUDA);
  torch::manual_seed(27);
  torch::nn::Sequential model = MakeModel();
  model->to(device);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3));
  Digest digest;
  const std::vector<double> losses = Train(model, optimizer, device, digest);
  AddState(digest, model, optimizer);

  std::string line = "{\"digest\": \"" + digest.Hex() + "\", \"losses\": [";
  for (size_t i = 0; i < losses.size(); ++i) line += (i ? ", " : "") + std::to_string(losses[i]);
  line += "]";
  if (!on_cpu) line += ", \"peak_allocated_bytes\": " + std::to_string(PeakAllocatedBytes());
  std::printf("%s}\n", line.c_str());
  return 0;
}
