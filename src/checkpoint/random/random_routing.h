// Random routers that prefer some experts, as trained ones do.
//
// The first 128 channels of the residual stream are reserved for the routers. The embedding writes the same
// number into the first 64 for every token, and random numbers that differ from token to token into the next
// 64; no layer adds anything to either. A router reads nothing else: its weights for the first 64 channels
// are one number b[e] per expert, those for the next 64 are random. So the score of expert e is b[e] plus
// normal noise that is independent from token to token and from expert to expert, and with b[e] = (normal
// quantile of p[e]) in units of the noise, expert e is chosen by about the fraction p[e] of all tokens. The
// p[e] follow Zipf's law, p = c / rank^exponent, at most 0.95, and sum to the number of experts that a token
// chooses; which expert has which rank differs from layer to layer.
#pragma once

#include <vector>

#include "checkpoint/random/random_binder.h"

namespace sluice::checkpoint::random {

// The fractions of tokens that choose each expert, by rank; they sum to `chosen`.
std::vector<double> zipf_shares(std::int64_t experts, std::int64_t chosen, double exponent);

// Values of the matrices that implement skewed routing, for modules that are not packed.
class SkewedRouting {
 public:
  SkewedRouting(const std::string& module, const ops::Shape& shape, std::int64_t chosen, double exponent);
  // Whether skewed routing changes any of the module's values.
  bool applies() const { return part_ != Part::none; }
  float operator()(std::int64_t row, std::int64_t column, float random) const;

 private:
  enum class Part { none, embedding, residual, router };
  Part part_ = Part::none;
  std::int64_t rows_ = 0;  // of one matrix
  double gain_ = 0;
  std::vector<double> preferences_;  // of the router, by expert
};

// Changes scales and biases of a module's 4- or 8-bit matrix so that it plays its part; `chosen` is the
// number of experts that a token chooses.
void skew_routing(const std::string& module, const ops::Shape& shape, std::int64_t chosen, double exponent,
                  RandomTensor& scales, RandomTensor& biases);

}  // namespace sluice::checkpoint::random
