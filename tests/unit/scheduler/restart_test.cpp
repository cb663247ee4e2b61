// Prompts cached in files: processes end, files are damaged or removed, and no token changes.
#include <cstdlib>
#include <fstream>
#include <future>

#include "conversations.h"
#include "temporary_folder.h"

namespace sluice {
namespace {

// For more of them than usual: SLUICE_TREES=200.
int trees() {
  const char* count = std::getenv("SLUICE_TREES");
  return count == nullptr ? 1 : std::atoi(count);
}

class Restarts : public Conversations {
 protected:
  std::unique_ptr<Scheduler> start(std::uint64_t disk_bytes = 64 << 20, std::int64_t cache_tokens = 2304) {
    return std::make_unique<Scheduler>(engine_,
                                       SchedulerOptions{.parallel = 3,
                                                        .context = kContext,
                                                        .cache_tokens = cache_tokens,
                                                        .cache_memory = 6 * engine_->summary().state_bytes,
                                                        .state_spacing = 256,
                                                        .cache_folder = folder_.path(),
                                                        .cache_folder_bytes = disk_bytes,
                                                        .log = [this](const std::string& line) {
                                                          const std::lock_guard lock(mutex_);
                                                          lines_.push_back(line);
                                                        }});
  }
  // Truncates, changes or removes a file.
  void damage() {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      files.push_back(entry.path());
    if (files.empty()) return;
    const std::filesystem::path& file = files[random_() % files.size()];
    std::error_code gone;  // its owner may remove it meanwhile
    const auto size = std::filesystem::file_size(file, gone);
    if (gone || size == 0) return;
    const int kind = below(3);
    if (kind == 0) std::filesystem::remove(file, gone);
    if (kind == 1) std::filesystem::resize_file(file, random_() % size, gone);
    if (kind != 2) return;
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(random_() % size);
    stream.seekg(at);
    const char was = static_cast<char>(stream.get());
    stream.seekp(at);
    stream.put(static_cast<char>(was ^ (1 << below(8))));
  }
  RequestResult run(Scheduler& scheduler, const Ids& prompt) {
    Request request;
    request.prompt = prompt;
    request.options.max_tokens = 3;
    request.options.ignore_stop_ids = true;
    const RequestResult result = scheduler.run(request);
    EXPECT_FALSE(result.error);
    EXPECT_EQ(result.generated.ids, alone(request));
    return result;
  }

  TemporaryFolder folder_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_P(Restarts, ChangeNoToken) {
  std::int64_t from_disk = 0;
  for (int tree = 0; tree < trees(); ++tree) {
    std::vector<Ids> known;
    auto scheduler = start();
    for (int turn = 0; turn < GetParam().turns; ++turn) {
      if (below(3) == 0) {
        scheduler.reset();
        if (below(2) == 0) damage();
        // Sometimes there is little room, in memory or on disk.
        scheduler = start(below(3) == 0 ? 1 << 20 : 64 << 20, below(3) == 0 ? 1024 : 2304);
      } else if (below(6) == 0) {
        damage();
      }
      std::vector<Request> requests;
      std::vector<std::future<RequestResult>> results;
      for (int i = 1 + below(3); i > 0; --i) {
        requests.push_back(request_for(i > 1 && !requests.empty() && below(2) == 0 ? requests[0].prompt
                                                                                   : next_prompt(known)));
        results.push_back(std::async(
            std::launch::async, [&scheduler, request = requests.back()] { return scheduler->run(request); }));
      }
      for (std::size_t i = 0; i < results.size(); ++i) {
        const RequestResult result = results[i].get();
        ASSERT_FALSE(result.error);
        ASSERT_EQ(result.generated.ids, alone(requests[i])) << "tree " << tree << ", turn " << turn;
        EXPECT_LE(result.prompt.from_disk, result.prompt.cached);
        EXPECT_LE(result.prompt.cached, result.prompt.common);
        from_disk += result.prompt.from_disk;
        Ids whole = requests[i].prompt;
        whole.insert(whole.end(), result.generated.ids.begin(), result.generated.ids.end());
        known.push_back(std::move(whole));
      }
    }
  }
  std::cout << from_disk << " tokens from files, " << lines_.size() << " lines logged\n";
}

// The same for tiny models only.
class RestartsOfTinyModels : public Restarts {};

TEST_P(RestartsOfTinyModels, FindWhatWasReadBefore) {
  Ids prompt;
  add_tokens(prompt, 330);
  EXPECT_EQ(run(*start(), prompt).prompt.cached, 0);
  {
    const auto scheduler = start();
    add_tokens(prompt, 20);
    const PromptReport report = run(*scheduler, prompt).prompt;
    EXPECT_EQ(report.cached, 320);
    EXPECT_EQ(report.from_disk, 320);
    // Now it is in memory, and only what is new has been written.
    EXPECT_EQ(run(*scheduler, prompt).prompt.from_disk, 0);
  }
  prompt[325] ^= 1;  // after a state
  EXPECT_EQ(run(*start(), prompt).prompt.from_disk, 320);
  prompt[300] ^= 1;  // after an intermediate state
  EXPECT_EQ(run(*start(), prompt).prompt.from_disk, 256);
  EXPECT_TRUE(lines_.empty());
}

// Another cache format has other bits, so nothing of it is used, and its files stay.
TEST_P(RestartsOfTinyModels, WithOtherOptionsFindNothing) {
  Ids prompt;
  add_tokens(prompt, 300);
  EXPECT_EQ(run(*start(), prompt).prompt.cached, 0);
  const auto before = folder_.count();
  const auto engine = engine_;
  engine_ = load_model(GetParam().model,
                       {.backend = GetParam().backend, .threads = 1, .key_bits = 8, .value_bits = 8});
  EXPECT_EQ(run(*start(), prompt).prompt.cached, 0);
  EXPECT_EQ(lines_.size(), 1u);
  EXPECT_EQ(folder_.count(), 2 * before);
  engine_ = engine;
  EXPECT_EQ(run(*start(), prompt).prompt.from_disk, 256);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Restarts,
    ::testing::Values(
        ConversationCase{"cpu", "delta-story", 16, 2}, ConversationCase{"cpu", "delta-story", 4, 2},
        ConversationCase{"cpu", "latent-story", 16, 2}, ConversationCase{"cpu", "latent-story", 4, 2},
        ConversationCase{"cpu", "qwen3_next"}, ConversationCase{"cpu", "qwen3_next", 4},
        ConversationCase{"cpu", "mlx-qwen3_5_moe-4bit"}, ConversationCase{"cpu", "mlx-qwen3_5_moe-4bit", 4},
        ConversationCase{"cpu", "deepseek_v3"}, ConversationCase{"cpu", "deepseek_v3", 4},
        ConversationCase{"cpu", "qwen3_moe"}, ConversationCase{"cpu", "qwen3_moe", 4},
        ConversationCase{"cpu", "qwen3_5"}, ConversationCase{"cpu", "qwen3_5", 4},
        ConversationCase{"cuda", "delta-story"}, ConversationCase{"cuda", "latent-story", 4}),
    model_case_name<ConversationCase>);
INSTANTIATE_TEST_SUITE_P(Models, RestartsOfTinyModels,
                         ::testing::Values(ConversationCase{"cpu", "qwen3_next"},
                                           ConversationCase{"cpu", "mlx-qwen3_5_moe-4bit", 4},
                                           ConversationCase{"cpu", "deepseek_v3"},
                                           ConversationCase{"cuda", "qwen3_next"},
                                           ConversationCase{"cuda", "mlx-qwen3_5_moe-4bit", 4}),
                         model_case_name<ConversationCase>);

// Each turn of a long conversation computes what is new, the previous answer and less than a block more,
// although the process ends now and then; so does an edit of the last message.
TEST(Restart, FiftyTurnsAreReadOnce) {
  const auto engine = load_model("qwen3_next", {.backend = "cpu", .threads = 1});
  const TemporaryFolder folder;
  const auto start = [&] {
    return std::make_unique<Scheduler>(
        engine, SchedulerOptions{.parallel = 1, .context = 1024, .cache_folder = folder.path()});
  };
  auto scheduler = start();
  Request request;
  request.options.max_tokens = 3;
  request.options.ignore_stop_ids = true;
  std::int64_t before = 0;
  for (int turn = 0; turn < 50; ++turn) {
    if (turn % 10 == 9) {
      scheduler.reset();  // writes pending files first
      scheduler = start();
    }
    for (int i = 0; i < 5 + turn % 20; ++i) request.prompt.push_back((turn * turn + 31 * i) % 97);
    const RequestResult result = scheduler->run(request);
    EXPECT_GT(result.prompt.cached, before - 64) << "turn " << turn;
    before = result.prompt.tokens;
    request.prompt.insert(request.prompt.end(), result.generated.ids.begin(), result.generated.ids.end());
  }
  request.prompt.resize(static_cast<std::size_t>(before));
  request.prompt.back() ^= 1;
  EXPECT_GE(scheduler->run(request).prompt.cached, (before - 1) / 64 * 64);
}

}  // namespace
}  // namespace sluice
