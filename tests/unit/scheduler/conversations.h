// Conversations that grow, are edited, fork and come back, and what a session of their own answers to them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cuda_device.h"
#include "load_model.h"
#include "sluice/scheduler.h"
#include "source_dir.h"

namespace sluice {

using Ids = std::vector<std::int32_t>;

struct ConversationCase {
  const char* backend;
  const char* model;
  int bits = 16;  // of the caches
  int turns = 15;
};

inline std::ostream& operator<<(std::ostream& to, const ConversationCase& one) {
  return to << one.backend << ' ' << one.model << ' ' << one.bits << " bits";
}

class Conversations : public ::testing::TestWithParam<ConversationCase> {
 protected:
  static constexpr std::int64_t kContext = 1000;

  void SetUp() override {
    const ConversationCase& one = GetParam();
    if (std::string_view(one.backend) == "cuda") {
      SLUICE_NEED_CUDA();
    }
    engine_ = load_model(one.model, {.backend = one.backend,
                                     .threads = 2,
                                     .prefill_chunk = 512,
                                     .key_bits = one.bits,
                                     .value_bits = one.bits});
    const unsigned seed = std::random_device()();
    std::cout << "seed " << seed << '\n';
    random_.seed(seed);
  }

  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  void add_tokens(Ids& to, int count) {
    for (; count > 0; --count) to.push_back(below(static_cast<int>(engine_->summary().vocab)));
  }
  // A prompt that has something to do with those before.
  Ids next_prompt(const std::vector<Ids>& known) {
    Ids prompt;
    if (!known.empty() && below(8) != 0) prompt = known[random_() % known.size()];
    const int kind = below(4);
    if (kind == 0 && !prompt.empty()) prompt.resize(1 + random_() % prompt.size());  // edited
    if (kind != 1 || prompt.empty()) add_tokens(prompt, 1 + below(200));             // else the same again
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

inline std::string conversation_name(const ::testing::TestParamInfo<ConversationCase>& info) {
  std::string name = std::string(info.param.backend) + "_" + info.param.model;
  if (info.param.bits != 16) name += "_" + std::to_string(info.param.bits);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace sluice
