#include "checkpoint/random/random_routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/integer_cast.h"

namespace sluice::checkpoint::random {

namespace {

constexpr std::int64_t kChannels = 128;  // channels for the routers: constant ones, then random ones
constexpr double kMostShare = 0.95;
constexpr double kConstant = 0.25;  // the value of the constant channels

// The inverse of the standard normal distribution function.
double normal_quantile(double p) {
  double low = -8;
  double high = 8;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < p ? low : high) = middle;
  }
  return low;
}

bool writes_to_residual(const std::string& module) {
  return module.ends_with("o_proj") || module.ends_with("out_proj") || module.ends_with("down_proj");
}

// A router's weights for the constant channels, by expert.
std::vector<double> preferences_of(const std::string& module, const ops::Shape& shape, std::int64_t chosen,
                                   double exponent) {
  std::vector<double> preferences = zipf_shares(shape[0], chosen, exponent);
  std::transform(preferences.begin(), preferences.end(), preferences.begin(), normal_quantile);
  std::shuffle(preferences.begin(), preferences.end(), std::mt19937_64(std::hash<std::string>()(module)));
  // The noise is 64 products of an embedding's and a router's value, both with variance 1/K; the signal is 64
  // times the constant.
  const double noise = 8.0 / shape[1];
  for (double& preference : preferences) preference *= noise / (64 * kConstant);
  return preferences;
}

// A gain that makes scores about 1 at any width.
double gain_of(const ops::Shape& shape) {
  return shape[1] / 8.0 / 8.0;
}

}  // namespace

std::vector<double> zipf_shares(std::int64_t experts, std::int64_t chosen, double exponent) {
  std::vector<double> shares(to_size(experts));
  const auto fill = [&](double c) {
    for (std::size_t i = 0; i < shares.size(); ++i)
      shares[i] = std::min(kMostShare, c / std::pow(to_double(i + 1), exponent));
    return std::accumulate(shares.begin(), shares.end(), 0.0);
  };
  double low = 0;
  double high = to_double(experts) * std::pow(to_double(experts), exponent);
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (fill(middle) < to_double(chosen) ? low : high) = middle;
  }
  return shares;
}

SkewedRouting::SkewedRouting(const std::string& module, const ops::Shape& shape, std::int64_t chosen,
                             double exponent) {
  if (module.ends_with("embed_tokens")) part_ = Part::embedding;
  if (writes_to_residual(module)) {
    part_ = Part::residual;
    rows_ = shape[shape.rank() - 2];
  }
  if (module.ends_with(".mlp.gate")) {
    part_ = Part::router;
    gain_ = gain_of(shape);
    preferences_ = preferences_of(module, shape, chosen, exponent);
  }
}

float SkewedRouting::operator()(std::int64_t row, std::int64_t column, float random) const {
  const bool constant = column < kChannels / 2;
  switch (part_) {
    case Part::embedding:
      return constant ? static_cast<float>(kConstant) : random;
    case Part::residual:
      return row % rows_ < kChannels ? 0.0f : random;
    case Part::router:
      if (column >= kChannels) return 0;
      return static_cast<float>(gain_ * (constant ? preferences_[row] : random));
    default:
      return random;
  }
}

void skew_routing(const std::string& module, const ops::Shape& shape, std::int64_t chosen, double exponent,
                  RandomTensor& scales, RandomTensor& biases) {
  using Fill = RandomTensor::Fill;
  constexpr std::int64_t kGroups = kChannels / 64;
  const double scale = scales.low;
  const double bias = biases.low;
  const auto set = [](RandomTensor& tensor, auto&& value) {
    tensor.fill = Fill::formula;
    tensor.at = value;
  };
  if (module.ends_with("embed_tokens")) {
    set(scales, [=](std::int64_t, std::int64_t group) { return group == 0 ? 0.0 : scale; });
    set(biases, [=](std::int64_t, std::int64_t group) { return group == 0 ? kConstant : bias; });
  } else if (writes_to_residual(module)) {
    const std::int64_t rows = shape[shape.rank() - 2];
    set(scales, [=](std::int64_t row, std::int64_t) { return row % rows < kChannels ? 0.0 : scale; });
    set(biases, [=](std::int64_t row, std::int64_t) { return row % rows < kChannels ? 0.0 : bias; });
  } else if (module.ends_with(".mlp.gate")) {
    const std::vector<double> preferences = preferences_of(module, shape, chosen, exponent);
    const double gain = gain_of(shape);
    set(scales, [=](std::int64_t, std::int64_t group) { return group == 1 ? gain * scale : 0.0; });
    set(biases, [=](std::int64_t row, std::int64_t group) {
      if (group >= kGroups) return 0.0;
      return gain * (group == 0 ? preferences[row] : bias);
    });
  }
}

}  // namespace sluice::checkpoint::random
