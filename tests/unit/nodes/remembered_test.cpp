// Prompts cached by several nodes: in memory, and in files identical to those of a single engine.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "shared_model.h"
#include "temporary_folder.h"

namespace sluice {
namespace {

using Ids = std::vector<std::int32_t>;

struct Shared {
  std::string model;
  int nodes;
  std::string layout;
  int bits = 16;  // of the caches

  EngineOptions options() const {
    return {.backend = "cpu", .threads = 1, .prefill_chunk = 128, .key_bits = bits, .value_bits = bits};
  }
};
std::ostream& operator<<(std::ostream& to, const Shared& one) {
  return to << one.model << " on " << one.nodes << " nodes as " << one.layout << ", " << one.bits << " bits";
}

SchedulerOptions in_files(const std::filesystem::path& folder, std::int64_t cache_tokens = 2048) {
  return {.parallel = 2,
          .context = 1024,
          .cache_tokens = cache_tokens,
          .state_spacing = 128,
          .cache_folder = folder,
          .log = [](const std::string& line) { ADD_FAILURE() << line; }};
}

Request greedy(Ids prompt) {
  Request request;
  request.prompt = std::move(prompt);
  request.options.max_tokens = 3;
  request.options.ignore_stop_ids = true;
  return request;
}

std::map<std::string, std::string> files_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename()] = read_all(entry.path());
  return files;
}

// Prompts of some blocks, each of which extends the previous one or diverges from it.
std::vector<Ids> conversation() {
  const Ids all = some_tokens(700);
  std::vector<Ids> prompts;
  for (const std::size_t length : {150u, 330u, 331u, 640u})
    prompts.emplace_back(all.begin(), all.begin() + length);
  prompts.push_back(prompts[1]);
  prompts.back()[200] ^= 1;
  return prompts;
}

class RememberedByNodes : public ::testing::TestWithParam<Shared> {
 protected:
  void on_nodes(const std::function<void(Engine&)>& use) const {
    with_nodes(GetParam().nodes, GetParam().model, GetParam().options(), {.layers = GetParam().layout}, use);
  }
};

TEST_P(RememberedByNodes, AreFilesOfOneEngine) {
  const TemporaryFolder folder, many;
  const auto ask = [&](Engine& engine, const TemporaryFolder& to) {
    Scheduler scheduler(engine.shared_from_this(), in_files(to.path()));
    std::vector<Ids> answers;
    for (const Ids& prompt : conversation()) answers.push_back(scheduler.run(greedy(prompt)).generated.ids);
    return answers;
  };
  const auto alone = load_model(GetParam().model, GetParam().options());
  const std::vector<Ids> want = ask(*alone, folder);
  on_nodes([&](Engine& engine) { EXPECT_EQ(ask(engine, many), want); });
  const auto files = files_in(folder.path());
  EXPECT_GE(files.size(), 4u);
  EXPECT_TRUE(files == files_in(many.path()));
  // So later processes find what the others wrote.
  Ids longer = conversation()[3];
  longer.insert(longer.end(), {5, 4, 3});
  const auto expect_found = [&](Engine& engine, const TemporaryFolder& from) {
    const RequestResult found =
        Scheduler(engine.shared_from_this(), in_files(from.path())).run(greedy(longer));
    EXPECT_EQ(found.prompt.from_disk, 640);
    EXPECT_EQ(found.generated.ids, generate(*alone->new_session(1024), longer, greedy(longer).options).ids);
  };
  on_nodes([&](Engine& engine) { expect_found(engine, folder); });
  expect_found(*alone, many);
}

// Rows and states are evicted to the leading node's memory and loaded from there.
TEST_P(RememberedByNodes, ComeBackFromMemory) {
  const unsigned seed = std::random_device()();
  std::cout << "seed " << seed << '\n';
  std::mt19937 random(seed);
  const auto alone = load_model(GetParam().model, GetParam().options());
  on_nodes([&](Engine& engine) {
    Scheduler scheduler(engine.shared_from_this(),
                        {.parallel = 2, .context = 1024, .cache_tokens = 1024, .state_spacing = 128});
    std::vector<Ids> known(3);
    for (Ids& prompt : known)
      for (int i = 0; i < 500; ++i) prompt.push_back(static_cast<std::int32_t>(random() % 90));
    std::int64_t from_host = 0;
    for (int turn = 0; turn < 9; ++turn) {
      Ids& prompt = known[random() % known.size()];
      for (unsigned more = random() % 60; more > 0; --more)
        prompt.push_back(static_cast<std::int32_t>(random() % 90));
      const RequestResult result = scheduler.run(greedy(prompt));
      EXPECT_EQ(result.generated.ids,
                generate(*alone->new_session(1024), prompt, greedy(prompt).options).ids);
      from_host += result.prompt.from_host;
    }
    EXPECT_GT(from_host, 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Models, RememberedByNodes,
                         ::testing::Values(Shared{"delta-story", 3, "auto", 4},
                                           Shared{"latent-story", 2, "auto"}, Shared{"qwen3_next", 2, "auto"},
                                           Shared{"mlx-qwen3_5_moe-4bit", 3, "groups:1,2"},
                                           Shared{"delta-story", 2, "experts"}));

}  // namespace
}  // namespace sluice
