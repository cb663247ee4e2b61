#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "backend/cuda/runtime/meeting.h"
#include "backend/cuda/runtime/rates.h"
#include "backend/cuda/runtime/transfer.h"
#include "backend/make.h"
#include "base/error.h"

namespace sluice::backend::cuda {

namespace {

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for the device's memory");
  return free;
}

// A recorded program: one graph, launched as a whole.
class GraphProgram final : public ops::Program {
 public:
  GraphProgram(Context& context, const std::function<void()>& body) : context_(context) {
    check(cudaStreamBeginCapture(context.stream(), cudaStreamCaptureModeRelaxed), "recording a program");
    cudaGraph_t graph = nullptr;
    try {
      body();
    } catch (...) {
      cudaStreamEndCapture(context.stream(), &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(context.stream(), &graph), "recording a program");
    const std::size_t before = free_memory();
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check(status, "preparing a recorded program");
    const std::size_t after = free_memory();
    bytes_ = before > after ? before - after : 0;
  }
  ~GraphProgram() override { cudaGraphExecDestroy(executable_); }
  GraphProgram(const GraphProgram&) = delete;
  GraphProgram& operator=(const GraphProgram&) = delete;

  void run() override {
    check(cudaGraphLaunch(executable_, context_.stream()), "running a recorded program");
  }
  std::uint64_t bytes() const override { return bytes_; }

 private:
  Context& context_;
  cudaGraphExec_t executable_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// Pinned memory: a copy to it needs no other on the way.
class Landing {
 public:
  static constexpr std::size_t kBytes = 4096;

  Landing() { check(cudaMallocHost(&data_, kBytes), "allocating pinned memory"); }
  ~Landing() { cudaFreeHost(data_); }
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

// From pinned memory to the device's.
double measure_bus_rate() {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  constexpr int kCopies = 8;
  const ops::Buffer from = allocate_pinned(kBytes);
  const ops::Buffer to = allocate_device(kBytes);
  double best = 0;
  for (int i = 0; i < kCopies; ++i) {
    const auto start = std::chrono::steady_clock::now();
    check(cudaMemcpy(to.data(), from.data(), kBytes, cudaMemcpyHostToDevice), "copying to the device");
    check(cudaDeviceSynchronize(), "copying to the device");
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, static_cast<double>(kBytes) / seconds);
  }
  return best;
}

class CudaBackend final : public ops::Backend {
 public:
  explicit CudaBackend(ops::Phase phase) : phase_(phase) {}

  std::string_view name() const override { return "cuda"; }
  std::string description() const override {
    const DeviceInfo& device = context_.device();
    return fmt::format("{}, {} multiprocessors, {:.1f} GB", device.name, device.multiprocessors,
                       static_cast<double>(device.memory_bytes) / 1e9);
  }
  std::uint64_t memory_bytes() const override { return context_.device().memory_bytes; }
  const ops::Traits& traits() const override { return kCudaTraits; }
  ops::Buffer allocate_pinned(std::size_t bytes) override { return cuda::allocate_pinned(bytes); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    transfer_.upload(context_.stream(), to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return;
    const bool small = bytes <= Landing::kBytes;  // the ids of a step
    check(
        cudaMemcpyAsync(small ? landing_.data() : to, from, bytes, cudaMemcpyDeviceToHost, context_.stream()),
        "copying from the device");
    synchronize();
    if (small) std::memcpy(to, landing_.data(), bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, context_.stream()),
          "copying on the device");
  }
  void clear(void* to, std::size_t bytes) override {
    check(cudaMemsetAsync(to, 0, bytes, context_.stream()), "clearing memory of the device");
  }
  void synchronize() override {
    check(cudaStreamSynchronize(context_.stream()), "running on the device");
    if (context_.fault()->kind == 0) return;
    const Fault fault = *context_.fault();
    *context_.fault() = {};
    fail(ErrorKind::input, "{}", describe(fault));
  }
  ops::Rates measure_rates(std::uint64_t memory) override { return cuda::measure_rates(context_, memory); }
  double measure_bus_rate() override { return cuda::measure_bus_rate(); }
  std::unique_ptr<ops::Meeting> make_meeting(const ops::Meeting::Room& room) override {
    return cuda::make_meeting(context_, room);
  }
  std::unique_ptr<ops::Program> record(std::function<void()> body) override {
    return std::make_unique<GraphProgram>(context_, body);
  }

 private:
  ops::Buffer allocate_block(std::size_t bytes) override { return allocate_device(bytes); }
  void execute(const ops::AnyOp& op, ops::Phase phase) override {
    context_.phase = phase == ops::Phase::automatic ? phase_ : phase;
    std::visit([this](const auto* known) { cuda::run(context_, *known); }, op);
  }

  ops::Phase phase_;
  Context context_;
  Transfer transfer_;
  Landing landing_;
};

}  // namespace

std::string unavailable() {
  int devices = 0;
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return "there is no NVIDIA driver on this machine";
  if (driver < CUDART_VERSION / 1000 * 1000)
    return fmt::format("the NVIDIA driver supports CUDA {}.{}, this build needs {}.0 or later", driver / 1000,
                       driver % 1000 / 10, CUDART_VERSION / 1000);
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess) return fmt::format("CUDA does not start: {}", cudaGetErrorString(status));
  if (devices == 0) return "there is no NVIDIA GPU on this machine";
  return {};
}

std::unique_ptr<ops::Backend> make(const ops::BackendOptions& options) {
  if (const std::string reason = unavailable(); !reason.empty())
    fail(ErrorKind::unsupported, "no CUDA backend: {}", reason);
  return std::make_unique<CudaBackend>(options.phase);
}

}  // namespace sluice::backend::cuda
