#include "layers/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/integer_cast.h"

namespace sluice::layers {

namespace {

using checkpoint::Config;

constexpr double kDefaultTheta = 1e4;  // the default of transformers for every family

std::vector<double> plain_table(std::int64_t dims, double theta) {
  std::vector<double> table(to_size(dims / 2));
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = std::pow(theta, -2.0 * i / to_double(dims));
  return table;
}

// 1 without stretching; grows with the logarithm of the factor.
double yarn_scale(double factor, double weight) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

void apply_yarn(const Config& scaling, const Config& config, std::int64_t dims, double theta,
                std::vector<double>& table, RotaryTable& result) {
  const auto factor = scaling.get<double>("factor");
  const auto original = scaling.optional<double>("original_max_position_embeddings")
                            .value_or(config.get_or<double>("max_position_embeddings", 4096));
  const auto fast = scaling.get_or<double>("beta_fast", 32);
  const auto slow = scaling.get_or<double>("beta_slow", 1);
  const bool truncate = scaling.get_or<bool>("truncate", true);
  // The channel that turns `rotations` times over the original context.
  const auto channel = [&](double rotations) {
    return to_double(dims) * std::log(original / (rotations * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  double low = channel(fast);
  double high = channel(slow);
  if (truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, to_double(dims - 1));
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const double ramp = std::clamp((to_double(i) - low) / (high - low), 0.0, 1.0);
    table[i] *= (1 - ramp) + ramp / factor;
  }
  const auto mscale = scaling.optional<double>("mscale");
  const auto mscale_all = scaling.optional<double>("mscale_all_dim");
  if (const auto given = scaling.optional<double>("attention_factor"))
    result.mscale = *given;
  else if (mscale.value_or(0) != 0 && mscale_all.value_or(0) != 0)
    result.mscale = yarn_scale(factor, *mscale) / yarn_scale(factor, *mscale_all);
  else
    result.mscale = yarn_scale(factor, 1);
  if (mscale_all.value_or(0) != 0) {
    const double all = yarn_scale(factor, *mscale_all);
    result.score_scale = all * all;
  }
}

// From a section of the configuration, or the plain table without one.
RotaryTable table_of(const Config& config, const Config* section, std::int64_t head_dim,
                     double default_partial) {
  double theta = config.get_or<double>("rope_theta", kDefaultTheta);
  if (section != nullptr) theta = section->get_or<double>("rope_theta", theta);
  double partial = config.get_or<double>("partial_rotary_factor", default_partial);
  if (section != nullptr) partial = section->get_or<double>("partial_rotary_factor", partial);
  const auto dims = static_cast<std::int64_t>(to_double(head_dim) * partial);
  if (dims < 2 || dims % 2 != 0 || dims > head_dim || !(theta > 1))
    fail(ErrorKind::checkpoint, "{}: rotary embedding over {} of {} channels with base {} is not possible",
         config.where(), dims, head_dim, theta);
  RotaryTable result;
  std::vector<double> table = plain_table(dims, theta);
  std::string kind = "default";
  if (section != nullptr) {
    const std::string older = section->get_or<std::string>("type", "default");
    kind = section->optional<std::string>("rope_type").value_or(older);
  }
  if (kind == "yarn")
    apply_yarn(*section, config, dims, theta, table, result);
  else if (kind != "default" && kind != "mrope")
    fail(ErrorKind::unsupported, "{}: rope_type '{}' is not supported; known are default and yarn",
         config.where(), kind);
  result.inv_freq.assign(table.begin(), table.end());
  return result;
}

}  // namespace

RotaryTable read_rotary(const Config& config, std::int64_t head_dim, double default_partial) {
  const auto parameters = config.section("rope_parameters");
  const auto scaling = config.section("rope_scaling");
  const auto read = [&](const std::optional<Config>& section) {
    return table_of(config, section ? &*section : nullptr, head_dim, default_partial);
  };
  if (!parameters || !scaling) return read(parameters ? parameters : scaling);
  // The newer and the older name of the same section; a checkpoint for programs of either age has both.
  RotaryTable result = read(parameters);
  const RotaryTable older = read(scaling);
  if (older.inv_freq != result.inv_freq || older.mscale != result.mscale ||
      older.score_scale != result.score_scale)
    fail(ErrorKind::checkpoint, "{}: rope_parameters and rope_scaling contradict each other", config.where());
  return result;
}

}  // namespace sluice::layers
