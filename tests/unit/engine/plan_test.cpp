// The memory in a plan is what an engine then takes.
#include "sluice/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cuda_device.h"
#include "engine/executor.h"
#include "expect_error.h"

namespace sluice {
namespace {

struct Case {
  const char* name;
  const char* backend;
  const char* geometry;
  std::int64_t sequences;
  int bits = 16;  // of the caches
};

class Plans : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::int64_t kContext = 4096;  // the first context in a plan

  void SetUp() override {
    if (std::string_view(GetParam().backend) == "cuda") {
      SLUICE_NEED_CUDA();
    }
  }
  static EngineOptions options(std::uint64_t memory = 0) {
    const bool host = ops::backend_traits(GetParam().backend).host_memory;
    return {.backend = GetParam().backend,
            .threads = 2,
            .prefill_chunk = 64,
            .key_bits = GetParam().bits,
            .value_bits = GetParam().bits,
            .memory = host ? memory : 0,
            .vram = host ? 0 : memory};
  }
  static MemoryPlan plan() {
    return plan_geometry(GetParam().geometry, 4, {.sequences = GetParam().sequences}, options());
  }
  static const PlacePlan& place_of(const MemoryPlan& plan) {
    return *std::ranges::find(plan.places, ops::backend_traits(GetParam().backend).place, &PlacePlan::place);
  }
  static std::shared_ptr<Engine> load(std::uint64_t memory = 0) {
    return Engine::random(GetParam().geometry, 4, options(memory));
  }
  static std::shared_ptr<engine::SlotGroup> reserve(Engine& engine) {
    return engine::core(engine).executor->reserve({GetParam().sequences, kContext});
  }
};

// Prompts in the largest passes, then steps of every number of sequences, greedy and sampled.
void use(Engine& engine, engine::SlotGroup& group) {
  using engine::ForwardPass;
  engine::Executor& executor = *engine::core(engine).executor;
  const std::int64_t vocab = engine.summary().vocab;
  const std::vector<std::int32_t> tokens(static_cast<std::size_t>(group.pass.chunk()), 7);
  executor.run([&] {
    std::vector<ForwardPass::Next> next;
    for (std::int32_t slot = 0; slot < group.pass.slots(); ++slot) {
      group.pass.run({ops::Phase::prefill, {{slot, 0, tokens, 1}}});
      next.push_back({slot, static_cast<std::int32_t>(tokens.size()), 3});
      for (const double temperature : {0.0, 1.0}) {
        const SamplingSettings settings{.temperature = temperature};  // requests refer to it
        const std::vector<engine::SampleRequest> requests(next.size(), {settings});
        group.pass.step_and_sample(next, requests, vocab);
      }
      engine::Batch step{ops::Phase::decode, {}};
      for (const ForwardPass::Next& one : next)
        step.sequences.push_back({one.slot, one.position, std::span(&one.id, 1), 1});
      group.pass.run(step);
    }
  });
}

TEST_P(Plans, SayWhatIsTakenWhenEverythingIsInUse) {
  const MemoryPlan known = plan();
  const PlacePlan& place = place_of(known);
  const auto engine = load();
  const std::uint64_t before = engine->memory().allocated;
  const auto group = reserve(*engine);
  use(*engine, *group);
  const EngineMemory taken = engine->memory();
  ASSERT_EQ(place.contexts.at(0).tokens, kContext);
  EXPECT_EQ(known.model.weight_bytes, engine->summary().weight_bytes);
  EXPECT_EQ(taken.sessions + taken.shared, taken.allocated - before);
  // Callers keep the logits of several sequences in addition.
  const std::uint64_t kept =
      static_cast<std::uint64_t>(GetParam().sequences * engine->summary().vocab) * sizeof(float);
  const std::uint64_t said = place.contexts[0].bytes - kept;
  const std::uint64_t programs = engine::ForwardPass::program_bytes(
      engine::core(*engine).model.decoder, engine::core(*engine).settings, {GetParam().sequences, kContext});
  EXPECT_EQ(taken.sessions, said - programs);
  EXPECT_LE(taken.programs, programs);
  EXPECT_LE(taken.shared, place.scratch);
}

// The plan's total is a sufficient limit, and a slightly lower one is not.
TEST_P(Plans, NameALimitThatDoes) {
  const MemoryPlan known = plan();
  const PlacePlan& place = place_of(known);
  const std::uint64_t all = known.model.weight_bytes + place.scratch + place.contexts.at(0).bytes;
  {
    const auto engine = load(all);
    use(*engine, *reserve(*engine));
  }
  const auto engine = load(all - (std::uint64_t{1} << 20));
  expect_error(ErrorKind::resource, {"would do"}, [&] { reserve(*engine); });
}

INSTANTIATE_TEST_SUITE_P(
    Models, Plans,
    ::testing::Values(Case{"cpu_delta", "cpu", "qwen3.6-35b-a3b:layers=4,experts=8,vocab=1024", 3},
                      Case{"cpu_delta_packed", "cpu", "qwen3.6-35b-a3b:layers=4,experts=8,vocab=1024", 2, 4},
                      Case{"cpu_attention", "cpu", "qwen3-30b-a3b:layers=2,experts=8,vocab=1024", 1},
                      Case{"cpu_latent", "cpu", "deepseek-v3:layers=1,experts=8,vocab=1024", 2},
                      Case{"cuda_delta", "cuda", "qwen3.6-35b-a3b:layers=4,experts=8,vocab=1024", 3}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sluice
