#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "backend/cuda/fused/recorded.h"
#include "backend/cuda/runtime/gather.h"
#include "backend/cuda/runtime/growing.h"
#include "backend/cuda/runtime/meeting.h"
#include "backend/cuda/runtime/rates.h"
#include "backend/cuda/runtime/transfer.h"
#include "backend/make.h"
#include "base/error.h"
#include "sluice/ops/stream_order.h"

namespace sluice::backend::cuda {

namespace {

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "querying the device's memory");
  return free;
}

// A recorded program as one CUDA graph.
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

// A pinned buffer: copies to it need no staging.
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

// Bytes per second from pinned to device memory.
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

class CudaBackend final : public ops::Backend, public ops::StreamOrder {
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
    run_recorded();
    transfer_.upload(context_.stream(), to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return;
    run_recorded();
    const bool small = bytes <= Landing::kBytes;  // the ids of a step
    check(
        cudaMemcpyAsync(small ? landing_.data() : to, from, bytes, cudaMemcpyDeviceToHost, context_.stream()),
        "copying from the device");
    synchronize();
    if (small) std::memcpy(to, landing_.data(), bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    run_recorded();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, context_.stream()),
          "copying on the device");
  }
  void gather(void* to, std::span<const ops::MemoryPart> from) override {
    run_recorded();
    gather_.from_device(context_, to, from);
    synchronize();
  }
  void scatter(std::span<const ops::MemoryPart> to, const void* from) override {
    run_recorded();
    gather_.to_device(context_, to, from);
  }
  void clear(void* to, std::size_t bytes) override {
    run_recorded();
    check(cudaMemsetAsync(to, 0, bytes, context_.stream()), "clearing memory of the device");
  }
  void synchronize() override {
    run_recorded();
    check(cudaStreamSynchronize(context_.stream()), "running on the device");
    if (context_.fault()->kind == 0) return;
    const Fault fault = *context_.fault();
    *context_.fault() = {};
    fail(ErrorKind::input, "{}", describe(fault));
  }
  ops::Rates measure_rates(std::uint64_t memory) override { return cuda::measure_rates(context_, memory); }
  double measure_bus_rate() override { return cuda::measure_bus_rate(); }
  std::unique_ptr<ops::Meeting> make_meeting(const ops::Meeting::Room& room) override {
    meets_ = true;
    return cuda::make_meeting(context_, room);
  }
  std::unique_ptr<ops::Program> record(std::function<void()> body) override {
    // The launches of a meeting are not collected as ops, so programs with meetings are recorded without
    // fusion.
    if (meets_) return std::make_unique<GraphProgram>(context_, body);
    return std::make_unique<GraphProgram>(context_, [&] {
      const Collecting collecting(recorded_);
      body();
      run_recorded();
    });
  }
  int device() const override { return context_.device().index; }
  void wait_for(void* stream) override {
    cudaEvent_t reached = nullptr;
    check(cudaEventCreateWithFlags(&reached, cudaEventDisableTiming), "making an event");
    cudaError_t status = cudaEventRecord(reached, static_cast<cudaStream_t>(stream));
    if (status == cudaSuccess) status = cudaStreamWaitEvent(context_.stream(), reached, 0);
    cudaEventDestroy(reached);  // takes effect once it has been reached
    check(status, "waiting for a stream");
  }

 private:
  ops::Buffer allocate_block(std::size_t bytes) override { return allocate_device(bytes); }
  std::unique_ptr<ops::GrowingBuffer> reserve_range(std::size_t most) override {
    return reserve_device(context_.device().index, most);
  }
  void execute(const ops::AnyOp& op, ops::Phase phase) override {
    const ops::Phase known_phase = phase == ops::Phase::automatic ? phase_ : phase;
    std::visit(
        [&](const auto* known) {
          if (recorded_ && fused::can_wait(*known)) return recorded_->push_back({*known, known_phase});
          run_recorded();
          context_.phase = known_phase;
          cuda::run(context_, *known);
        },
        op);
  }
  // Work that is not an op must follow the ops collected before it.
  void run_recorded() {
    if (!recorded_) return;
    fused::run_all(context_, *recorded_);
    recorded_->clear();
  }

  // Present while a program is recorded.
  using Recorded = std::optional<std::vector<fused::RecordedOp>>;
  struct Collecting {
    explicit Collecting(Recorded& recorded) : recorded(recorded) { recorded.emplace(); }
    ~Collecting() { recorded.reset(); }
    Collecting(const Collecting&) = delete;
    Collecting& operator=(const Collecting&) = delete;
    Recorded& recorded;
  };

  ops::Phase phase_;
  Recorded recorded_;
  bool meets_ = false;
  Context context_;
  Transfer transfer_;
  Gather gather_;
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
