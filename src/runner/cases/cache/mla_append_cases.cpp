#include "sluice/ops/cache/mla_append.h"

#include "base/error.h"
#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/cases/element_type.h"
#include "runner/paged_case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

struct Sizes {
  std::int64_t tokens;
  std::int64_t start;
  std::int64_t rows;
  std::int64_t rank;
  std::int64_t rope;
};

OpFile make(std::uint64_t seed, const TypePair& types, const Sizes& sizes) {
  const auto& [tokens, start, rows, rank, rope] = sizes;
  Random random(seed);
  OpFile file;
  file.tensors["kv_latent"] = normal(random, types.first, {tokens, rank});
  file.tensors["k_pe"] = normal(random, types.first, {tokens, rope});
  file.tensors["latent_cache"] = normal(random, types.second, {rows, rank});
  file.tensors["rope_cache"] = normal(random, types.second, {rows, rope});
  file.attributes["start"] = std::to_string(start);
  return file;
}

OpFile make_pool(std::uint64_t seed, const TypePair& types) {
  Random random(seed);
  OpFile file;
  file.tensors["kv_latent"] = normal(random, types.first, {8, 40});
  file.tensors["k_pe"] = normal(random, types.first, {8, 6});
  file.tensors["latent_cache"] = normal(random, types.second, {3, 20, 40});
  file.tensors["rope_cache"] = normal(random, types.second, {3, 20, 6});
  file.tensors["seq_starts"] = indices({0, 7, 7, 8});
  file.tensors["start"] = indices({13, 20, 0});
  file.tensors["slots"] = indices({2, 0, 1});
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::MlaAppend>() {
  std::vector<Case> table;
  for (const TypePair& types : type_pairs()) {
    const std::string label_end = fmt::format(" {} to {}", name(types.first), name(types.second));
    const auto add = [&](const std::string& label, const Sizes& sizes) {
      table.push_back({label + label_end, [=](std::uint64_t seed) { return make(seed, types, sizes); }});
    };
    add("first token", {1, 0, 8, 512, 64});
    add("last row", {1, 7, 8, 33, 17});
    add("fills the cache", {65, 0, 65, 40, 24});
    add("in the middle", {257, 100, 400, 32, 8});
    table.push_back({"pool" + label_end, [=](std::uint64_t seed) { return make_pool(seed, types); }});
  }
  add_paged_cases(table, ops::MlaAppend::kName);
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::MlaAppend>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512})
    table.push_back({fmt::format("{} tokens, rank 512+64 bf16", tokens),
                     [=](std::uint64_t seed) {
                       return make(seed, type_pairs()[1], {tokens, 1000, 4096, 512, 64});
                     },
                     to_double(tokens) * 576 * 2 * 2, 0});
  return table;
}

}  // namespace sluice::runner
