#include "backend/make.h"

#include <fmt/format.h>

#include "base/error.h"

namespace sluice::ops {

namespace {

class CalledProgram final : public Program {
 public:
  explicit CalledProgram(std::function<void()> body) : body_(std::move(body)) {}
  void run() override { body_(); }

 private:
  std::function<void()> body_;
};

}  // namespace

Buffer Backend::allocate(std::size_t bytes) {
  Buffer buffer = allocate_block(bytes);
  buffer.count_in(allocated_);
  return buffer;
}

std::unique_ptr<GrowingBuffer> Backend::reserve(std::size_t most) {
  std::unique_ptr<GrowingBuffer> buffer = reserve_range(most);
  buffer->count_in(allocated_);
  return buffer;
}

void Backend::gather(void* to, std::span<const MemoryPart> from) {
  auto* at = static_cast<std::byte*>(to);
  for (const MemoryPart& part : from) {
    download(at, part.data, part.bytes);
    at += part.bytes;
  }
}

void Backend::scatter(std::span<const MemoryPart> to, const void* from) {
  const auto* at = static_cast<const std::byte*>(from);
  for (const MemoryPart& part : to) {
    upload(part.data, at, part.bytes);
    at += part.bytes;
  }
}

std::unique_ptr<Meeting> Backend::make_meeting(const Meeting::Room&) {
  fail(ErrorKind::unsupported, "programs of the backend '{}' cannot wait for the host", name());
}

std::unique_ptr<Program> Backend::record(std::function<void()> body) {
  return std::make_unique<CalledProgram>(std::move(body));
}

std::vector<std::string_view> backend_names() {
  return {"reference", "cpu", "cuda"};
}

std::unique_ptr<Backend> make_host_backend(const BackendOptions& options) {
  return make_backend("cpu", options);
}

const Traits& backend_traits(std::string_view name) {
  if (name == "reference") return backend::kReferenceTraits;
  if (name == "cpu") return backend::kCpuTraits;
  if (name == "cuda") return backend::kCudaTraits;
  fail(ErrorKind::input, "there is no backend '{}'; known are {}", name, fmt::join(backend_names(), ", "));
}

std::unique_ptr<Backend> make_backend(std::string_view name, const BackendOptions& options) {
  if (options.threads < 0)
    fail(ErrorKind::input, "the number of threads is {}; it must be at least 1, or 0 for one per core",
         options.threads);
  if (!options.isa.empty() && name != "cpu" && name != "auto")
    fail(ErrorKind::input,
         "the backend '{}' has no instruction sets to choose from; only the backend 'cpu' has", name);
  if (name == "reference") return backend::reference::make();
  if (name == "cpu") return backend::cpu::make(options);
  if (name == "cuda") return backend::cuda::make(options);
  if (name == "auto")
    return backend::cuda::unavailable().empty() && options.isa.empty() ? backend::cuda::make(options)
                                                                       : backend::cpu::make(options);
  fail(ErrorKind::input, "there is no backend '{}'; known are auto, {}", name,
       fmt::join(backend_names(), ", "));
}

}  // namespace sluice::ops
