#include "sampling/settings.h"

#include <gtest/gtest.h>

#include <limits>

#include "expect_error.h"

namespace sluice::sampling {
namespace {

TEST(SamplingSettings, WhatMakesNoSenseIsRefusedByName) {
  const auto refused = [](std::string_view field, const SamplingSettings& settings) {
    expect_error(ErrorKind::input, {"sampling", field}, [&] { check(settings, 5); });
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  refused("temperature", {.temperature = -1});
  refused("temperature", {.temperature = kInfinity});
  refused("temperature", {.temperature = 1e60});  // rows are F32
  refused("top_k", {.top_k = -1});
  refused("top_p", {.top_p = 0});
  refused("top_p", {.top_p = 1.01});
  refused("top_p", {.top_p = 1e-60});
  refused("min_p", {.min_p = 2});
  refused("min_p", {.min_p = std::numeric_limits<double>::quiet_NaN()});
  refused("repetition_penalty", {.repetition_penalty = 0});
  refused("presence_penalty", {.presence_penalty = kInfinity});
  refused("frequency_penalty", {.frequency_penalty = -kInfinity});
  refused("penalty_window", {.penalty_window = -1});
  refused("logit_bias", {.logit_bias = {{5, 1.0}}});
  refused("logit_bias", {.logit_bias = {{-1, 1.0}}});
  refused("logit_bias", {.logit_bias = {{4, -kInfinity}}});
  refused("logprobs", {.logprobs = 21});
  refused("logprobs", {.logprobs = -2});
  check({}, 5);
  check({.temperature = 2, .top_k = 7, .top_p = 1, .min_p = 1, .logit_bias = {{4, -100.0}}, .logprobs = 20},
        5);
}

}  // namespace
}  // namespace sluice::sampling
