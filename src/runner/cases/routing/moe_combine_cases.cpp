#include "sluice/ops/routing/moe_combine.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/cases/element_type.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

enum class Shared { none, plain, gated };

struct Sample {
  std::string label;
  std::int64_t tokens, slots, width;
  Shared shared = Shared::gated;
  double scale = 1;
  double gate_scale = 2;
};

OpFile make(std::uint64_t seed, const TypePair& types, const Sample& s) {
  Random random(seed);
  OpFile file;
  file.tensors["residual"] = normal(random, types.first, {s.tokens, s.width}, s.scale);
  file.tensors["expert_out"] = normal(random, types.second, {s.tokens, s.slots, s.width}, s.scale);
  file.tensors["weights"] = uniform(random, ops::DType::f32, {s.tokens, s.slots}, 0, 1);
  if (s.shared != Shared::none)
    file.tensors["shared_out"] = normal(random, types.second, {s.tokens, s.width}, s.scale);
  if (s.shared == Shared::gated)
    file.tensors["shared_gate"] = normal(random, types.first, {s.tokens}, s.gate_scale);
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::MoeCombine>() {
  std::vector<Sample> samples = {{"no shared expert", 3, 4, 77, Shared::none},
                                 {"plain shared expert", 3, 4, 77, Shared::plain},
                                 {"no experts", 5, 0, 40},
                                 {"no experts, no shared expert", 5, 0, 40, Shared::none},
                                 {"one column", 4, 3, 1},
                                 {"wide", 2, 8, 2500},
                                 {"many slots", 2, 37, 64},
                                 {"saturated gate", 9, 2, 33, Shared::gated, 1, 200},
                                 {"huge", 3, 4, 77, Shared::gated, 1e15},
                                 {"tiny", 3, 4, 77, Shared::gated, 1e-15}};
  for (const std::int64_t tokens : {1, 2, 65})
    samples.push_back({std::to_string(tokens) + " tokens", tokens, 8, 256});
  return cases_of_types(samples, make);
}

template <>
std::vector<BenchCase> bench_cases<ops::MoeCombine>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512})
    for (const TypePair& types : {type_pairs()[0], type_pairs()[1]}) {
      const Sample sample{"", tokens, 8, 2048};
      // Reads the residual, 8 experts and the shared expert, writes the output.
      const double elements = to_double(tokens) * 2048;
      table.push_back({std::to_string(tokens) + " x 8 x 2048 " + types.label,
                       [=](std::uint64_t seed) { return make(seed, types, sample); },
                       11 * elements * to_double(size_bytes(types.first)), 18 * elements});
    }
  return table;
}

}  // namespace sluice::runner
