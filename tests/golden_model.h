// The tiny checkpoints of tests/data/models with the results of their original implementations.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "sampling/argmax.h"
#include "sluice/session.h"
#include "source_dir.h"

namespace sluice {

inline std::vector<std::string> golden_model_names() {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(test_data() + "/models"))
    if (fs::exists(entry.path() / "expect.safetensors")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline std::string golden_test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

inline double relative_difference(std::span<const float> a, std::span<const float> b) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

// An engine's results for a checkpoint's prompt, and the expected ones.
struct GoldenRun {
  double logits_error = 0;  // relative L2 over the rows in the file
  std::vector<std::int32_t> chosen;
  std::vector<std::int32_t> greedy;
};

class GoldenModelTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path folder() const { return std::filesystem::path(test_data() + "/models") / GetParam(); }
  template <class T>
  std::vector<T> expected(const char* name) const {
    const checkpoint::SafetensorsFile file(folder() / "expect.safetensors");
    const checkpoint::TensorEntry* tensor = file.find(name);
    if (tensor == nullptr) return {};
    std::vector<T> result(tensor->data.size() / sizeof(T));
    std::memcpy(result.data(), tensor->data.data(), tensor->data.size());
    return result;
  }
  std::vector<std::int32_t> golden_tokens() const { return expected<std::int32_t>("tokens"); }

  GoldenRun golden_run(Engine& engine) const {
    const auto tokens = golden_tokens();
    const auto positions = expected<std::int32_t>("positions");
    const auto logits = expected<float>("logits");
    const auto vocab = static_cast<std::size_t>(engine.summary().vocab);
    GoldenRun run;
    run.greedy = expected<std::int32_t>("greedy");
    EXPECT_EQ(logits.size(), positions.size() * vocab);
    const auto session = engine.new_session(static_cast<std::int64_t>(tokens.size() + run.greedy.size()));
    std::vector<float> rows;
    session->extend(tokens, [&](std::int64_t position, std::span<const float> row) {
      if (std::find(positions.begin(), positions.end(), position) != positions.end())
        rows.insert(rows.end(), row.begin(), row.end());
    });
    EXPECT_EQ(rows.size(), logits.size());
    run.logits_error = relative_difference(rows, logits);
    for (std::size_t i = 0; i < run.greedy.size(); ++i) {
      run.chosen.push_back(sampling::argmax(session->logits()));
      session->step(run.chosen.back());
    }
    return run;
  }
};

}  // namespace sluice
