// Experts that the host computes for a GPU, for all tiny checkpoints: compared with the reference, within the
// rounding of the activations that are copied both ways.
#include "experts/host_experts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "engine/core.h"
#include "golden_model.h"

namespace sluice {
namespace {

using experts::Expert;

std::vector<float> reference(const std::vector<float>& x, const Expert& expert) {
  const auto backend = ops::make_backend("reference");
  const std::int64_t hidden = expert.gate_proj.shape()[1];
  std::vector<float> input = x;
  std::vector<float> inner(static_cast<std::size_t>(expert.gate_proj.shape()[0]));
  std::vector<float> out(x.size());
  const ops::View middle(inner.data(), ops::DType::f32, {1, expert.gate_proj.shape()[0]});
  backend->run(ops::GateUpSwiglu{.x = ops::View(input.data(), ops::DType::f32, {1, hidden}),
                                 .gate_w = expert.gate_proj,
                                 .up_w = expert.up_proj,
                                 .out = middle});
  backend->run(ops::Matmul{
      .x = middle, .w = expert.down_proj, .out = ops::View(out.data(), ops::DType::f32, {1, hidden})});
  return out;
}

// x converted to a type of activations, and back.
std::vector<std::byte> narrow(std::vector<float>& x, ops::DType type) {
  std::vector<std::byte> bytes(x.size() * size_bytes(type));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const ops::BFloat16 rounded = ops::to_bfloat16(x[i]);
    if (type == ops::DType::bf16) x[i] = ops::to_float(rounded);
    std::memcpy(&bytes[i * size_bytes(type)],
                type == ops::DType::bf16 ? static_cast<const void*>(&rounded) : &x[i], size_bytes(type));
  }
  return bytes;
}

std::vector<float> widen(const std::vector<std::byte>& bytes, ops::DType type) {
  std::vector<float> x(bytes.size() / size_bytes(type));
  for (std::size_t i = 0; i < x.size(); ++i) {
    ops::BFloat16 rounded;
    if (type == ops::DType::f32) std::memcpy(&x[i], &bytes[i * sizeof(float)], sizeof(float));
    if (type != ops::DType::bf16) continue;
    std::memcpy(&rounded, &bytes[i * sizeof(rounded)], sizeof(rounded));
    x[i] = ops::to_float(rounded);
  }
  return x;
}

class HostExpertsOf : public GoldenModelTest {
 protected:
  // The largest relative L2 error of the experts' results.
  double worst(ops::DType type, bool exact) {
    const auto engine = Engine::load(folder(), {.backend = "cpu", .threads = 2, .expert_slots = 1000});
    if (engine->summary().experts == 0) return 0;
    const auto session = engine->new_session(16);
    experts::Cache& cache = *engine::core(*engine).streamed.cache;
    const auto cpu = ops::make_backend("cpu", {.threads = 2, .exact = exact});
    experts::HostExperts host(*cpu, type);
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    double error = 0;
    for (int layer = 0; layer < cache.store().layers(); ++layer) {
      const std::vector<std::int32_t> wanted{0, 1};
      experts::Cache::Pass pass(cache, layer, wanted);
      for (auto residents = pass.next(); !residents.empty(); residents = pass.next())
        for (const experts::Cache::Resident& resident : residents) {
          const Expert& expert = resident.weights;
          std::vector<float> x(static_cast<std::size_t>(expert.gate_proj.shape()[1]));
          for (float& value : x) value = normal(random);
          const std::vector<std::byte> input = narrow(x, type);
          std::vector<std::byte> out(input.size(), std::byte{0xff});  // NaN
          host.compute(input.data(), std::span(&expert, 1), out.data());
          error = std::max(error, relative_difference(widen(out, type), reference(x, expert)));
          if (std::isnan(error)) return error;
        }
    }
    return error;
  }
};

TEST_P(HostExpertsOf, AreThoseOfTheReference) {
  EXPECT_LT(worst(ops::DType::f32, true), 1e-5);
  EXPECT_LT(worst(ops::DType::f32, false), 5e-4);
  EXPECT_LT(worst(ops::DType::bf16, false), 4e-3);
}

INSTANTIATE_TEST_SUITE_P(Models, HostExpertsOf, ::testing::ValuesIn(golden_model_names()), golden_test_name);

}  // namespace
}  // namespace sluice
