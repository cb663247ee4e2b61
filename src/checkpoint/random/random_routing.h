// Random routers that prefer some experts, as trained ones do.
//
// The first 128 channels of the residual stream are kept for the routers. The embedding writes the same
// number into the first 64 for every token, and random ones that differ from token to token into the next 64;
// no layer adds anything to either. A router looks at nothing else: its weights for the first 64 channels are
// one number b[e] an expert, those for the next 64 are random. So the score of expert e is b[e] plus noise
// that is normal and independent from token to token and from expert to expert, and with b[e] = (normal
// quantile of p[e]) in units of the noise, expert e is among the chosen in about the share p[e] of all
// tokens. The p[e] follow Zipf's law, p = c / rank^exponent, at most 0.95, with a sum of the experts a token
// chooses; which expert has which rank differs from layer to layer.
#pragma once

#include <vector>

#include "checkpoint/random/random_binder.h"

namespace sluice::checkpoint {

// Shares of the tokens that choose the experts, by rank; the sum is `chosen`.
std::vector<double> zipf_shares(std::int64_t experts, std::int64_t chosen, double exponent);

// What skewed matrices of numbers that are not packed look like, module by module.
class SkewedRouting {
 public:
  SkewedRouting(const std::string& module, const ops::Shape& shape, std::int64_t chosen, double exponent);
  // Whether any of its numbers differ from what they are without it.
  bool applies() const { return part_ != Part::none; }
  float operator()(std::int64_t row, std::int64_t column, float random) const;

 private:
  enum class Part { none, embedding, residual, router };
  Part part_ = Part::none;
  std::int64_t rows_ = 0;  // of a matrix
  double gain_ = 0;
  std::vector<double> preferences_;  // of the router, by expert
};

// Changes scales and biases of the 4- or 8-bit matrix of a module so that it plays its part; `chosen` is the
// number of experts a token chooses.
void skew_routing(const std::string& module, const ops::Shape& shape, std::int64_t chosen, double exponent,
                  RandomTensor& scales, RandomTensor& biases);

}  // namespace sluice::checkpoint
