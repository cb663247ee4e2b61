// Contexts of 262,144 tokens: the last positions can be computed, and memory is as planned.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/core.h"
#include "layers/pass.h"
#include "sluice/session.h"
#include "source_dir.h"
#include "state/state_pool.h"
#include "temporary_folder.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kContext = 262144;

struct Case {
  const char* model;
  std::size_t prompt;
};

class LongContext : public ::testing::TestWithParam<Case> {
 protected:
  // A fixture whose config declares a long context.
  LongContext() {
    fs::copy(fs::path(test_data() + "/models") / GetParam().model, model_);
    std::ifstream file(model_ / "config.json");
    Json config = Json::parse(file);
    config["max_position_embeddings"] = kContext;
    std::ofstream(model_ / "config.json") << config.dump();
  }

  TemporaryFolder folder_;
  fs::path model_ = folder_.path() / "model";
};

std::size_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

// Replaces computing a past: fills the caches with realistic numbers.
void fill_caches(ops::Backend& backend, const state::StatePool& pool) {
  std::vector<float> noise(1 << 16);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = std::sin(static_cast<float>(i) * 0.7f + 0.3f);
  for (const state::LayerState& layer : pool.layers()) {
    state::for_each_tensor(layer, [&](const ops::View& cache, state::Layout layout) {
      if (layout == state::Layout::whole) return;
      const std::size_t bytes = state::bytes_of(cache);
      for (std::size_t at = 0; at < bytes; at += noise.size() * sizeof(float))
        backend.upload(static_cast<std::byte*>(cache.data) + at, noise.data(),
                       std::min(noise.size() * sizeof(float), bytes - at));
    });
  }
}

// The logits of tokens 1, 2, 3, ... at the very end of the context.
std::vector<float> last_logits(Engine& engine, std::int64_t tokens) {
  engine::Core& core = engine::core(engine);
  const layers::Decoder& decoder = core.model.decoder;
  state::StatePool pool(*core.backend, decoder.states(), {1, kContext}, {});
  pool.make_writable(0, 0, kContext);
  fill_caches(*core.backend, pool);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens));
  std::iota(ids.begin(), ids.end(), 1);
  std::vector<std::int32_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(kContext - tokens));
  std::vector<float> logits(ids.size() * static_cast<std::size_t>(decoder.vocab));
  layers::Pass pass;
  pass.tokens = tokens;
  pass.ids = {ids.data(), ops::DType::i32, {tokens}};
  pass.positions = {positions.data(), ops::DType::i32, {tokens}};
  pass.start = kContext - tokens;
  pass.page_table = pool.page_table()[0];
  layers::Arena arena(core.backend->allocate(decoder.activation_bytes(tokens, {}, ops::DType::f32)));
  layers::Device device(*core.backend, arena, ops::DType::f32);
  decoder.forward(device, pass, pool.layers(), {logits.data(), ops::DType::f32, {tokens, decoder.vocab}});
  return logits;
}

TEST_P(LongContext, LastPositionsComputeAsTheReferenceDoes) {
  const auto cpu = Engine::load(model_, {.backend = "cpu", .threads = 1, .exact = true});
  const auto reference = Engine::load(model_, {.backend = "reference"});
  const std::vector<float> got = last_logits(*cpu, 2);
  const std::vector<float> want = last_logits(*reference, 2);
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(got[i] - want[i], 2);
    size += std::pow(want[i], 2);
  }
  EXPECT_GT(size, 0);
  EXPECT_LT(std::sqrt(difference / size), 1e-4);
}

TEST_P(LongContext, LongPromptsTakeTheMemoryThatWasSaid) {
  const std::size_t tokens = GetParam().prompt;
  const auto engine = Engine::load(model_, {.backend = "cpu", .threads = 1});
  std::vector<std::int32_t> prompt(tokens);
  for (std::size_t i = 0; i < tokens; ++i) prompt[i] = static_cast<std::int32_t>(i * 31 % 97);
  const std::size_t before = peak_memory();
  const auto session = engine->new_session(tokens);
  session->extend(prompt);
  EXPECT_EQ(session->length(), static_cast<std::int64_t>(tokens));
  // All scores at the same time would take 140 MB per head or more.
  constexpr std::size_t kSlack = 48u << 20;
  EXPECT_LT(peak_memory() - before, session->bytes() + kSlack);
  EXPECT_EQ(session->bytes(), engine->session_bytes(tokens));
}

INSTANTIATE_TEST_SUITE_P(Models, LongContext,
                         ::testing::Values(Case{"qwen3_5_moe", 20000}, Case{"deepseek_v3", 6000}),
                         [](const auto& info) { return std::string(info.param.model); });

}  // namespace
}  // namespace sluice
