// Models with streamed experts: the same bits as with everything in memory.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "checkpoint/random/random_routing.h"
#include "cuda_device.h"
#include "expect_error.h"
#include "golden_model.h"
#include "sluice/convert.h"
#include "sluice/experts.h"
#include "sluice/random_model.h"
#include "source_dir.h"
#include "temporary_folder.h"

namespace sluice {
namespace {

std::vector<std::string> models_with_experts() {
  std::vector<std::string> names = golden_model_names();
  const auto dense = [](const std::string& name) {
    std::ifstream file(std::filesystem::path(test_data() + "/models") / name / "config.json");
    const std::string config{std::istreambuf_iterator<char>(file), {}};
    return config.find("num_experts_per_tok") == std::string::npos;
  };
  names.erase(std::remove_if(names.begin(), names.end(), dense), names.end());
  return names;
}

// Logits of a prompt and of the following steps.
std::vector<float> run(const std::filesystem::path& folder, std::span<const std::int32_t> tokens,
                       const EngineOptions& options) {
  const auto engine = Engine::load(folder, options);
  const auto session = engine->new_session(static_cast<std::int64_t>(tokens.size()) + 16);
  std::vector<float> all;
  session->extend(tokens, [&](std::int64_t, std::span<const float> row) {
    all.insert(all.end(), row.begin(), row.end());
  });
  for (int i = 0; i < 12; ++i) {
    session->step(sampling::argmax(session->logits()));
    all.insert(all.end(), session->logits().begin(), session->logits().end());
  }
  return all;
}

class StreamedModel : public GoldenModelTest {};

TEST_P(StreamedModel, GivesTheBitsOfTheResidentOne) {
  const auto tokens = golden_tokens();
  EngineOptions options{.backend = "cpu", .threads = 2, .prefill_chunk = 64};
  const std::vector<float> want = run(folder(), tokens, options);
  for (const char* policy : {"lru", "lfru"})
    for (const std::int64_t slots : {1, 3, 1000}) {
      options.expert_slots = slots;
      options.expert_policy = policy;
      EXPECT_EQ(run(folder(), tokens, options), want) << policy << " with " << slots << " slots";
    }
}

TEST_P(StreamedModel, PackedGivesTheSameBits) {
  const auto tokens = golden_tokens();
  EngineOptions options{.backend = "cpu", .threads = 2, .prefill_chunk = 64};
  if (Engine::load(folder(), options)->summary().experts == 0) {
    expect_error(ErrorKind::input, {"no experts"}, [&] { pack_experts(folder(), "/nonexistent/packed"); });
    return;
  }
  const TemporaryFolder temporary;
  const std::filesystem::path packed = temporary.path() / "packed";
  pack_experts(folder(), packed);
  const std::vector<float> want = run(folder(), tokens, options);
  EXPECT_EQ(run(packed, tokens, options), want) << "mapped";
  options.expert_slots = 3;
  EXPECT_EQ(run(packed, tokens, options), want) << "streamed";
}

INSTANTIATE_TEST_SUITE_P(Models, StreamedModel, ::testing::ValuesIn(models_with_experts()), golden_test_name);

class CudaStreamedModel : public GoldenModelTest {
 protected:
  void SetUp() override { SLUICE_NEED_CUDA(); }
};

// Few slots in device memory, long and short passes, with experts in RAM and on disk behind them.
TEST_P(CudaStreamedModel, GivesTheBitsOfTheResidentOne) {
  const auto tokens = golden_tokens();
  EngineOptions options{.backend = "cuda", .prefill_chunk = 64};
  for (const bool exact : {true, false}) {
    options.exact = exact;
    options.expert_slots = 0;
    options.memory = 0;
    const std::vector<float> want = run(folder(), tokens, options);
    struct Tiers {
      std::int64_t slots;
      std::uint64_t memory;
    };
    for (const Tiers& tiers : {Tiers{1, 0}, Tiers{7, 1}, Tiers{1000, 0}}) {
      options.expert_slots = tiers.slots;
      options.memory = tiers.memory;
      EXPECT_EQ(run(folder(), tokens, options), want)
          << tiers.slots << " slots, memory " << tiers.memory << ", exact " << exact;
    }
  }
}

// The CPU rounds differently from the GPU, so generated tokens may differ: compares logits of a given text.
// In BF16 rounding may also change the choices of these tiny models' routers.
TEST_P(CudaStreamedModel, TheHostMayComputeWhatIsMissing) {
  const auto tokens = golden_tokens();
  for (const bool exact : {true, false}) {
    EngineOptions options{.backend = "cuda", .prefill_chunk = 4, .exact = exact};
    const auto logits = [&] {
      const auto engine = Engine::load(folder(), options);
      const auto session = engine->new_session(static_cast<std::int64_t>(tokens.size()));
      std::vector<float> all;
      for (const std::int32_t id : std::span(tokens).first(40)) {
        session->step(id);
        all.insert(all.end(), session->logits().begin(), session->logits().end());
      }
      return all;
    };
    options.expert_slots = 0;
    const std::vector<float> want = logits();
    for (const char* miss : {"cpu", "auto"}) {
      options.expert_slots = 1;
      options.miss = miss;
      const std::vector<float> got = logits();
      double error = 0;
      double size = 0;
      for (std::size_t i = 0; i < want.size(); ++i) {
        error += std::pow(got[i] - want[i], 2);
        size += std::pow(want[i], 2);
      }
      EXPECT_LT(std::sqrt(error / size), exact ? 1e-4 : 0.1) << miss << ", exact " << exact;
    }
  }
}

TEST(Miss, NamesWhatIsAllowed) {
  SLUICE_NEED_CUDA();
  expect_error(ErrorKind::input, {"'carrier pigeon'", "bus, cpu or auto"}, [] {
    Engine::load(test_data() + "/models/mlx-qwen3_moe-4bit",
                 {.backend = "cuda", .miss = "carrier pigeon", .expert_slots = 3});
  });
}

INSTANTIATE_TEST_SUITE_P(Models, CudaStreamedModel, ::testing::ValuesIn(models_with_experts()),
                         golden_test_name);

TEST(StreamedStory, IsTheResidentStory) {
  for (const char* name : {"delta-story", "latent-story"}) {
    const std::filesystem::path folder = std::filesystem::path(source_dir() + "/models") / name;
    const auto story = [&](const EngineOptions& options) {
      const auto engine = Engine::load(folder, options);
      GenerateOptions generation;
      generation.max_tokens = 60;
      return generate(*engine->new_session(128), engine->encode("Once upon a time"), generation).text;
    };
    EXPECT_EQ(story({.backend = "cpu", .expert_slots = 5}), story({.backend = "cpu"})) << name;
    EXPECT_EQ(story({.backend = "cpu", .expert_slots = 10}), story({.backend = "cpu"})) << name;
  }
}

// The end of the file is fingerprints; damages one expert before them.
TEST(PackedModel, DamageIsNamed) {
  const std::filesystem::path model = test_data() + "/models/mlx-qwen3_moe-4bit";
  const TemporaryFolder temporary;
  const std::filesystem::path packed = temporary.path() / "packed";
  pack_experts(model, packed);
  const auto layers = Engine::load(packed, {.backend = "cpu"})->summary().layers;
  const std::filesystem::path last =
      packed / fmt::format("model-{:05}-of-{:05}.safetensors", layers + 1, layers + 1);
  ASSERT_TRUE(std::filesystem::exists(last)) << last;
  std::string bytes = read_all(last);
  bytes[4096 + 17] = static_cast<char>(bytes[4096 + 17] ^ 4);
  std::ofstream(last, std::ios::binary) << bytes;
  const auto engine = Engine::load(packed, {.backend = "cpu", .expert_slots = 100});
  const auto session = engine->new_session(256);
  expect_error(ErrorKind::resource, {fmt::format("expert 0 of layer {}", layers - 1), "damaged"}, [&] {
    for (std::int32_t id = 0; id < 200; ++id) session->step(id % 64);
  });
  // The rest of the timeline cannot be trusted, and using it is an error; the engine serves others.
  expect_error(ErrorKind::input, {"failed before"}, [&] { session->step(1); });
  session->reset();
  EXPECT_EQ(session->length(), 0);
}

TEST(Budget, NamesTheSmallestThatWouldDo) {
  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path() / "model";
  write_random_model("qwen3-30b-a3b:layers=2,experts=32,vocab=1024", 4, folder);
  const EngineOptions options{.backend = "cpu", .threads = 1, .prefill_chunk = 16, .memory = 20'000'000};
  std::uint64_t enough = 0;
  try {
    Engine::load(folder, options)->new_session(32);
    ADD_FAILURE() << "20 MB hold a model of 170 MB";
  } catch (const Error& error) {
    const std::string text = error.what();
    enough = std::stoull(text.substr(text.find("--memory ") + 9));
  }
  EngineOptions more = options;
  more.memory = enough + 50'000'000;
  const auto engine = Engine::load(folder, more);
  const auto session = engine->new_session(32);
  const ExpertUsage usage = expert_usage(*engine);
  EXPECT_GE(usage.slots, 9);
  EXPECT_LT(usage.slots, 32);
  const std::vector<std::int32_t> prompt{1, 2, 3, 4, 5};
  session->extend(prompt);
  const auto resident = Engine::load(folder, {.backend = "cpu", .threads = 1, .prefill_chunk = 16});
  const auto same = resident->new_session(32);
  same->extend(prompt);
  EXPECT_TRUE(std::ranges::equal(same->logits(), session->logits()));
  EXPECT_EQ(expert_usage(*resident).slots, 0);
  // Another session takes its memory from the experts and returns it.
  {
    const auto other = engine->new_session(4096);
    EXPECT_LT(expert_usage(*engine).slots, usage.slots);
  }
  EXPECT_EQ(expert_usage(*engine).slots, usage.slots);
}

TEST(RandomRouting, FollowsZipfsLaw) {
  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path() / "model";
  write_random_model("qwen3-30b-a3b:layers=2,experts=32,vocab=2048", 4, folder, {}, 1.0);
  const auto engine = Engine::load(folder, {.backend = "cpu", .expert_slots = 32});
  const auto session = engine->new_session(512);
  for (std::int32_t id = 0; id < 400; ++id) session->step(id * 5 % 2048);
  for (std::vector<std::uint32_t> uses : expert_usage(*engine).uses) {
    std::sort(uses.rbegin(), uses.rend());
    const std::vector<double> shares = checkpoint::random::zipf_shares(32, 8, 1.0);
    for (const std::size_t rank : {0, 3, 7, 15, 31})
      EXPECT_NEAR(uses[rank] / 400.0, shares[rank], 0.12) << "rank " << rank;
  }
}

}  // namespace
}  // namespace sluice
