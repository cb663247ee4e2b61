// Nodes that share experts, where the leading node or another one has a device with its own memory: the
// device computes what every token uses, processors compute experts.
#include <gtest/gtest.h>

#include <set>

#include "discrete_backend.h"
#include "engine/core.h"
#include "expect_error.h"
#include "golden_model.h"
#include "shared_model.h"
#include "sluice/experts.h"

namespace sluice {
namespace {

const NodesOptions kByExperts{.layers = "experts"};

// A node's part of the model on a device, which replaces its backend before anything is placed.
class OnDevice final : public engine::LayerShare {
 public:
  OnDevice(std::shared_ptr<engine::LayerShare> share, ops::DType activations)
      : share_(std::move(share)), activations_(activations) {}

  Range divide(const engine::Core& core) override {
    auto& own = const_cast<engine::Core&>(core);
    own.backend = std::make_unique<DiscreteBackend>(std::move(own.backend), activations_);
    own.settings = engine::settings_for(own.options, own.backend->traits());
    return share_->divide(core);
  }
  std::optional<Range> own_experts() const override { return share_->own_experts(); }
  bool holds_dense() const override { return share_->holds_dense(); }
  std::string name() const override { return share_->name(); }
  void connect(engine::Core& core) override { share_->connect(core); }
  std::unique_ptr<state::PoolReplica> open(const state::Extent& extent, std::int64_t chunk) override {
    return share_->open(extent, chunk);
  }
  std::int64_t begin(state::PoolReplica* replica, const engine::Batch& batch) override {
    return share_->begin(replica, batch);
  }
  std::int64_t stages() const override { return share_->stages(); }

 private:
  std::shared_ptr<engine::LayerShare> share_;
  ops::DType activations_;
};

struct Machines {
  int count = 2;
  std::set<int> with_device{0};
  ops::DType activations = ops::DType::f32;
};

void with_devices(const Machines& machines, const std::string& model, const EngineOptions& options,
                  const NodesOptions& settings, const std::function<void(Engine&)>& use,
                  const std::function<void(int rank, EngineOptions&)>& change = {}) {
  with_nodes(machines.count, model, options, settings, use, [&](int rank, EngineOptions& own) {
    if (change) change(rank, own);
    if (machines.with_device.contains(rank))
      own.share = std::make_shared<OnDevice>(own.share, machines.activations);
  });
}

std::vector<float> transcript_with(const Machines& machines, const std::string& model,
                                   const EngineOptions& options, std::size_t tokens,
                                   const NodesOptions& settings = kByExperts) {
  std::vector<float> got;
  with_devices(machines, model, options, settings,
               [&](Engine& engine) { got = transcript(engine, some_tokens(tokens)); });
  return got;
}

const EngineOptions kChunks{.backend = "cpu", .threads = 1, .prefill_chunk = 64};

class DeviceHead : public ::testing::TestWithParam<std::string> {};

// The test's device computes like a processor, so that only errors between the two show.
TEST_P(DeviceHead, GivesTheBitsOfProcessors) {
  const auto alone = load_model(GetParam(), kChunks);
  if (alone->summary().experts == 0) return;  // nodes with devices share layers
  const std::vector<float> want = transcript(*alone, some_tokens(80));
  EXPECT_TRUE(transcript_with({3, {0, 2}}, GetParam(), kChunks, 80) == want);
}

INSTANTIATE_TEST_SUITE_P(Tiny, DeviceHead, ::testing::ValuesIn(golden_model_names()), golden_test_name);
INSTANTIATE_TEST_SUITE_P(Bundled, DeviceHead, ::testing::Values("delta-story", "latent-story"),
                         golden_test_name);

// Devices that hold layers, and devices on the heads of groups.
TEST(DeviceHeads, ShareLayers) {
  for (const char* model : {"delta-story", "latent-story"}) {
    const std::vector<float> want = transcript(*load_model(model, kChunks), some_tokens(80));
    const auto expect_same = [&](const Machines& machines, const char* layout) {
      EXPECT_TRUE(transcript_with(machines, model, kChunks, 80, {.layers = layout}) == want)
          << model << " as " << layout;
    };
    expect_same({3, {0, 1, 2}}, "auto");
    expect_same({4, {0, 2}}, "groups:2,2");
    expect_same({5, {0, 1, 2, 3, 4}}, "groups:3,2");
  }
}

TEST(DeviceHeads, NeedNotLead) {
  const std::vector<float> want = transcript(*load_model("mlx-qwen3_5_moe-4bit", kChunks), some_tokens(80));
  EXPECT_TRUE(transcript_with({2, {1}}, "mlx-qwen3_5_moe-4bit", kChunks, 80) == want);
}

// Rows are sent in the device's type; the experts' results are the same for any number of nodes.
TEST(DeviceHeads, SendRowsInTheirOwnType) {
  for (const char* model : {"mlx-qwen3_5_moe-4bit", "mlx-deepseek_v3-4bit"}) {
    const std::vector<float> want = transcript(*load_model(model, kChunks), some_tokens(80));
    const std::vector<float> two = transcript_with({2, {0}, ops::DType::bf16}, model, kChunks, 80);
    EXPECT_TRUE(two == transcript_with({3, {0, 1}, ops::DType::bf16}, model, kChunks, 80)) << model;
    EXPECT_NE(two, want) << "BF16 rounds";
  }
}

TEST(DeviceHeads, StreamTheExpertsOfTheirProcessors) {
  EngineOptions few = kChunks;
  few.expert_slots = 2;
  const std::vector<float> want = transcript(*load_model("delta-story", kChunks), some_tokens(80));
  EXPECT_TRUE(transcript_with({3, {0}}, "delta-story", few, 80) == want);
  // Half of the experts take 5.3 MB.
  EngineOptions little = kChunks;
  little.memory = 5'200'000;
  with_devices(
      {2, {0}}, "delta-story", little, {.layers = "experts:8,8"},
      [&](Engine& engine) {
        EXPECT_TRUE(transcript(engine, some_tokens(80)) == want);
        EXPECT_GT(expert_usage(engine).misses, 0u);
      },
      [](int rank, EngineOptions& own) {
        if (rank != 0) own.memory = 0;
      });
}

TEST(DeviceHeads, RunManySequences) {
  with_devices({2, {0}}, "delta-story", kOneThread, kByExperts, [&](Engine& engine) {
    expect_as_alone(engine, "delta-story", {.parallel = 4, .context = 256}, 8, story_request);
  });
}

TEST(DeviceHeads, AgreeWithProcessorsOnExpertsOnly) {
  const auto nothing = [](Engine&) {};
  // Layers are computed by devices on all nodes or on none.
  expect_error(ErrorKind::input,
               {"arithmetic differs", "node 0 (machine0) has discrete", "node 1 (machine1)"}, [&] {
                 with_devices({2, {0}}, "delta-story", kOneThread, {}, nothing);
               });
  expect_error(ErrorKind::input, {"arithmetic of experts differs", "node 1 (machine1) has", "exact", "--isa"},
               [&] {
                 with_devices({2, {0}}, "delta-story", kOneThread, kByExperts, nothing,
                              [](int rank, EngineOptions& own) { own.exact = rank == 1; });
               });
  expect_error(ErrorKind::input,
               {"arithmetic differs", "node 0 (machine0) has discrete", "node 2 (machine2)"}, [&] {
                 with_devices({4, {0}}, "delta-story", kOneThread, {.layers = "groups:2,2"}, nothing);
               });
  // A group of one node would compute its experts on its device.
  expect_error(ErrorKind::input, {"'groups:1,2'", "GPUs", "--backend cpu"}, [&] {
    with_devices({3, {0, 1, 2}}, "delta-story", kOneThread, {.layers = "groups:1,2"}, nothing);
  });
}

}  // namespace
}  // namespace sluice
