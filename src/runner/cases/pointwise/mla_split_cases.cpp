#include "sluice/ops/pointwise/mla_split.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/cases/element_type.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

struct Sample {
  std::int64_t tokens, heads, nope, rope, rank;
};

OpFile make(std::uint64_t seed, const TypePair& types, const Sample& s) {
  Random random(seed);
  OpFile file;
  file.tensors["q_full"] = normal(random, types.first, {s.tokens, s.heads, s.nope + s.rope});
  file.tensors["kv_pre"] = normal(random, types.second, {s.tokens, s.rank + s.rope});
  file.attributes = {{"nope", std::to_string(s.nope)}, {"rope", std::to_string(s.rope)}};
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::MlaSplit>() {
  std::vector<Case> table;
  for (const TypePair& types : type_pairs())
    for (const Sample& s : {Sample{1, 1, 1, 1, 1}, Sample{1, 16, 128, 64, 512}, Sample{65, 3, 37, 6, 50},
                            Sample{257, 2, 16, 8, 32}})
      table.push_back({std::to_string(s.tokens) + " x " + std::to_string(s.heads) + " heads " + types.label,
                       [=](std::uint64_t seed) { return make(seed, types, s); }});
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::MlaSplit>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512})
    table.push_back({std::to_string(tokens) + " x 128 x 192 bf16",
                     [=](std::uint64_t seed) {
                       return make(seed, type_pairs()[1], {tokens, 128, 128, 64, 512});
                     },
                     to_double(tokens) * (128 * 192 + 576) * 2 * 2, 0});
  return table;
}

}  // namespace sluice::runner
