// Conversations that grow, are edited, fork and return, and the answers of a session of their own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "model_case.h"
#include "printed_seed.h"
#include "sluice/scheduler.h"
#include "source_dir.h"

namespace sluice {

using Ids = std::vector<std::int32_t>;

struct ConversationCase : ModelCase {
  int turns = 15;
};

class Conversations : public ::testing::TestWithParam<ConversationCase> {
 protected:
  static constexpr std::int64_t kContext = 1000;

  void SetUp() override {
    SLUICE_NEED_DEVICE_OF(GetParam());
    engine_ = GetParam().load(512);
    random_.seed(printed_seed());
  }

  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  void add_tokens(Ids& to, int count) {
    for (; count > 0; --count) to.push_back(below(static_cast<int>(engine_->summary().vocab)));
  }
  // A prompt related to earlier ones.
  Ids next_prompt(const std::vector<Ids>& known) {
    Ids prompt;
    if (!known.empty() && below(8) != 0) prompt = known[random_() % known.size()];
    const int kind = below(4);
    if (kind == 0 && !prompt.empty()) prompt.resize(1 + random_() % prompt.size());  // edited
    // otherwise the same again
    if (kind != 1 || prompt.empty()) add_tokens(prompt, 1 + below(200));
    if (prompt.size() > 800) prompt.resize(static_cast<std::size_t>(1 + below(800)));
    return prompt;
  }
  Request request_for(const Ids& prompt) {
    Request request;
    request.prompt = prompt;
    request.options.max_tokens = 1 + below(20);
    request.options.ignore_stop_ids = true;
    request.options.sampling.temperature = below(2);
    request.options.sampling.seed = random_();
    if (below(6) == 0) request.cache_salt = "another";
    return request;
  }
  Ids alone(const Request& request) {
    return generate(*engine_->new_session(kContext), request.prompt, request.options).ids;
  }

  std::shared_ptr<Engine> engine_;
  std::mt19937 random_;
};

}  // namespace sluice
