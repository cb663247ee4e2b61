// Whole models against the implementations they come from: transformers and mlx-lm
// (tests/data/models/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "sampling/sampler.h"
#include "sluice/session.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(SLUICE_TEST_DATA "/models"))
    if (fs::exists(entry.path() / "expect.safetensors")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

template <class T>
std::vector<T> values(const checkpoint::Safetensors& file, const char* name) {
  const checkpoint::TensorEntry* tensor = file.find(name);
  if (tensor == nullptr) return {};
  std::vector<T> result(tensor->data.size() / sizeof(T));
  std::memcpy(result.data(), tensor->data.data(), tensor->data.size());
  return result;
}

class GoldenModel : public ::testing::TestWithParam<std::string> {
 protected:
  fs::path folder() const { return fs::path(SLUICE_TEST_DATA "/models") / GetParam(); }
};

TEST_P(GoldenModel, LogitsAndGreedyTextMatchTheOracle) {
  const checkpoint::SafetensorsFile expected(folder() / "expect.safetensors");
  const auto tokens = values<std::int32_t>(expected, "tokens");
  const auto logits = values<float>(expected, "logits");
  const auto greedy = values<std::int32_t>(expected, "greedy");
  auto positions = values<std::int32_t>(expected, "positions");
  const auto engine = Engine::load(folder(), {.backend = "cpu", .threads = 2});
  const auto vocab = static_cast<std::size_t>(engine->summary().vocab);
  ASSERT_EQ(logits.size(), positions.size() * vocab);
  const auto session = engine->new_session(static_cast<std::int64_t>(tokens.size() + greedy.size()));
  std::size_t next = 0;
  double difference = 0;
  double size = 0;
  session->extend(tokens, [&](std::int64_t position, std::span<const float> row) {
    if (next == positions.size() || positions[next] != position) return;
    for (std::size_t i = 0; i < vocab; ++i) {
      const double want = logits[next * vocab + i];
      difference += (row[i] - want) * (row[i] - want);
      size += want * want;
    }
    ++next;
  });
  ASSERT_EQ(next, positions.size());
  EXPECT_LT(std::sqrt(difference / size), 2e-5);  // the oracles themselves agree to 1e-5
  std::vector<std::int32_t> chosen;
  for (std::size_t i = 0; i < greedy.size(); ++i) {
    chosen.push_back(sampling::argmax(session->logits()));
    session->extend(std::span(&chosen.back(), 1));
  }
  EXPECT_EQ(chosen, greedy);
}

double relative_difference(std::span<const float> a, std::span<const float> b) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

// Everything a timeline can go through must leave the same state behind.
TEST_P(GoldenModel, ChunksStepsSnapshotsAndRewindsAgree) {
  const auto tokens =
      values<std::int32_t>(checkpoint::SafetensorsFile(folder() / "expect.safetensors"), "tokens");
  const auto engine = Engine::load(folder(), {.backend = "cpu", .threads = 2, .prefill_chunk = 64});
  const auto capacity = static_cast<std::int64_t>(tokens.size()) + 8;
  const auto whole = engine->new_session(capacity);
  whole->extend(tokens);
  const std::vector<float> want(whole->logits().begin(), whole->logits().end());

  // Cuts at multiples of 64 fall on the same chunk borders: the same bits.
  const auto aligned = engine->new_session(capacity);
  aligned->extend(std::span(tokens).first(128));
  const Snapshot middle = aligned->snapshot();
  const Snapshot mark = aligned->mark();
  aligned->extend(std::span(tokens).subspan(128));
  EXPECT_TRUE(std::equal(want.begin(), want.end(), aligned->logits().begin()));

  // Another session, disturbed in between, restored to the middle.
  const auto restored = engine->new_session(capacity);
  restored->extend(std::span(tokens).last(70));
  restored->restore(middle);
  EXPECT_EQ(restored->length(), 128);
  restored->extend(std::span(tokens).subspan(128));
  EXPECT_TRUE(std::equal(want.begin(), want.end(), restored->logits().begin()));

  aligned->rewind(mark);
  aligned->extend(std::span(tokens).subspan(128));
  EXPECT_TRUE(std::equal(want.begin(), want.end(), aligned->logits().begin()));

  // One token at a time, and ragged chunks: the delta rule's two forms differ by rounding.
  const auto stepped = engine->new_session(capacity);
  stepped->extend(std::span(tokens).first(tokens.size() - 3));
  for (std::size_t i = tokens.size() - 3; i < tokens.size(); ++i)
    stepped->extend(std::span(tokens).subspan(i, 1));
  EXPECT_LT(relative_difference(stepped->logits(), want), 1e-4);
  const auto ragged = engine->new_session(capacity);
  for (std::size_t at = 0; at < tokens.size(); at += 37)
    ragged->extend(std::span(tokens).subspan(at, std::min<std::size_t>(37, tokens.size() - at)));
  EXPECT_LT(relative_difference(ragged->logits(), want), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenModel, ::testing::ValuesIn(model_names()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

}  // namespace
}  // namespace sluice
