#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "backend/cpu/linear/linear.h"
#include "backend/cpu/runtime/context.h"
#include "backend/host_memory.h"
#include "backend/make.h"
#include "base/integer_cast.h"
#include "base/machine_peak.h"

namespace sluice::backend::cpu {

std::byte* Context::grow(ops::Buffer& buffer, std::size_t bytes) {
  if (buffer.bytes() < bytes) {
    buffer = {};  // free first: the old contents are not needed
    buffer = allocate_host(bytes);
  }
  return static_cast<std::byte*>(buffer.data());
}

namespace {

class CpuBackend final : public HostBackend {
 public:
  CpuBackend(int threads, const ops::BackendOptions& options)
      : context_(threads, options.exact, choose_isa(options.isa)) {}

  std::string_view name() const override { return "cpu"; }
  std::string description() const override {
    return fmt::format("{} threads, {}", context_.pool().size(), name_of(context_.isa()));
  }

  const ops::Traits& traits() const override { return kCpuTraits; }
  bool exact() const override { return context_.exact(); }
  ops::Rates measure_rates(std::uint64_t memory) override {
    return {measure_read_bandwidth(context_.pool(), memory),
            measure_flops(context_.pool(), context_.target())};
  }

 private:
  void execute(const ops::AnyOp& op, ops::Phase) override {
    std::visit([this](const auto* known) { cpu::run(context_, *known); }, op);
  }
  // Products run in one parallel loop.
  void execute_together(std::span<const ops::AnyOp> all, ops::Phase phase) override {
    std::array<linear::Linear, linear::kMostTogether> products;
    std::size_t count = 0;
    for (const ops::AnyOp& op : all)
      std::visit(
          [&](const auto* known) {
            if constexpr (requires { linear::linear_of(*known); }) {
              products[count++] = linear::linear_of(*known);
              if (count == products.size())
                linear::run_linears(context_, std::span(products).first(std::exchange(count, 0)));
            } else {
              execute(op, phase);
            }
          },
          op);
    linear::run_linears(context_, std::span(products).first(count));
  }

  mutable Context context_;
};

}  // namespace

std::unique_ptr<ops::Backend> make(const ops::BackendOptions& options) {
  const int cores = std::max(1, to_int(std::thread::hardware_concurrency()));
  return std::make_unique<CpuBackend>(options.threads > 0 ? options.threads : cores, options);
}

}  // namespace sluice::backend::cpu
