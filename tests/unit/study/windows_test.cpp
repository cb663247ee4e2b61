// The windows of a long text equal those of lm-eval.
#include "study/windows.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "source_dir.h"

namespace sluice::study {
namespace {

TEST(RollingWindows, AreThoseOfLmEval) {
  const Json cases = read_json_file(test_data() + "/study/windows.json");
  ASSERT_GT(cases.size(), 100U);
  for (const Json& one : cases) {
    const auto [tokens, context, stride] = one.at("case").get<std::array<std::int64_t, 3>>();
    Json found = Json::array();
    for (const Window& window : rolling_windows(tokens, context, stride))
      found.push_back({window.begin, window.end, window.target});
    EXPECT_EQ(found, one.at("windows")) << tokens << " tokens, context " << context << ", stride " << stride;
  }
}

}  // namespace
}  // namespace sluice::study
