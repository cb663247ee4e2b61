#include "checkpoint/stop_ids.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "expect_error.h"
#include "temporary_folder.h"

namespace sluice::checkpoint {
namespace {

std::optional<int> lookup(std::string_view token) {
  return token == "<|im_end|>" ? std::optional(248046) : std::nullopt;
}

class StopIds : public testing::Test {
 protected:
  std::vector<int> ids() const {
    return stop_ids(folder_.path(), [](std::string_view token) { return lookup(token); });
  }
  TemporaryFolder folder_;
};

TEST_F(StopIds, AreTheUnionOfAllFiles) {
  folder_.write("config.json", R"({"eos_token_id": [9], "text_config": {"eos_token_id": 248044}})");
  EXPECT_EQ(ids(), (std::vector<int>{9, 248044}));
  folder_.write("generation_config.json", R"({"eos_token_id": [248044, 7]})");
  EXPECT_EQ(ids(), (std::vector<int>{7, 9, 248044}));
  folder_.write("tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
  EXPECT_EQ(ids(), (std::vector<int>{7, 9, 248044, 248046}));
  folder_.write("tokenizer_config.json", R"({"eos_token": {"content": "<|im_end|>", "lstrip": false}})");
  EXPECT_EQ(ids(), (std::vector<int>{7, 9, 248044, 248046}));
}

TEST_F(StopIds, MayBeAbsent) {
  folder_.write("config.json", R"({"eos_token_id": null})");
  folder_.write("generation_config.json", "{}");
  folder_.write("tokenizer_config.json", R"({"eos_token": null})");
  EXPECT_TRUE(ids().empty());
}

TEST_F(StopIds, RefuseWhatIsNoId) {
  for (const char* bad : {"-1", "\"x\"", "1.5", "[1, \"x\"]", "[-1]", "4294967296", "{}"}) {
    SCOPED_TRACE(bad);
    folder_.write("config.json", fmt::format(R"({{"eos_token_id": {}}})", bad));
    expect_error(ErrorKind::checkpoint, {"config.json", "'eos_token_id'"}, [&] { ids(); });
  }
  folder_.write("config.json", "{}");
  folder_.write("tokenizer_config.json", R"({"eos_token": "<end>"})");
  expect_error(ErrorKind::checkpoint, {"tokenizer_config.json", "'<end>'"}, [&] { ids(); });
  folder_.write("tokenizer_config.json", R"({"eos_token": {}})");
  expect_error(ErrorKind::checkpoint, {"'content'", "missing"}, [&] { ids(); });
  folder_.write("generation_config.json", "{");
  expect_error(ErrorKind::checkpoint, {"generation_config.json"}, [&] { ids(); });
}

}  // namespace
}  // namespace sluice::checkpoint
