#include "sluice/ops/cache/kv_append.h"

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
  std::int64_t heads;
  std::int64_t width;
  std::int64_t value_width;
  double scale = 1;
};

OpFile make(std::uint64_t seed, const TypePair& types, const Sizes& sizes) {
  const auto& [tokens, start, rows, heads, width, value_width, scale] = sizes;
  Random random(seed);
  OpFile file;
  file.tensors["k"] = normal(random, types.first, {tokens, heads, width}, scale);
  file.tensors["v"] = normal(random, types.first, {tokens, heads, value_width}, scale);
  file.tensors["k_cache"] = normal(random, types.second, {rows, heads, width});
  file.tensors["v_cache"] = normal(random, types.second, {rows, heads, value_width});
  file.attributes["start"] = std::to_string(start);
  return file;
}

OpFile make_pool(std::uint64_t seed, const TypePair& types) {
  Random random(seed);
  OpFile file;
  file.tensors["k"] = normal(random, types.first, {9, 2, 24});
  file.tensors["v"] = normal(random, types.first, {9, 2, 20});
  file.tensors["k_cache"] = normal(random, types.second, {5, 16, 2, 24});
  file.tensors["v_cache"] = normal(random, types.second, {5, 16, 2, 20});
  file.tensors["seq_starts"] = indices({0, 5, 5, 6, 9});
  file.tensors["start"] = indices({11, 16, 0, 7});
  file.tensors["slots"] = indices({4, 1, 0, 3});
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::KvAppend>() {
  std::vector<Case> table;
  for (const TypePair& types : type_pairs()) {
    const std::string label_end = fmt::format(" {} to {}", name(types.first), name(types.second));
    const auto add = [&](const std::string& label, const Sizes& sizes) {
      table.push_back({label + label_end, [=](std::uint64_t seed) { return make(seed, types, sizes); }});
    };
    add("first token", {1, 0, 8, 2, 64, 64});
    add("last row", {1, 7, 8, 1, 33, 17});
    add("fills the cache", {65, 0, 65, 3, 40, 24});
    add("in the middle", {257, 100, 400, 2, 16, 16});
    add("huge", {3, 2, 9, 1, 8, 8, 1e30});
    add("tiny", {3, 2, 9, 1, 8, 8, 1e-40});
    table.push_back({"pool" + label_end, [=](std::uint64_t seed) { return make_pool(seed, types); }});
  }
  add_paged_cases(table, ops::KvAppend::kName);
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::KvAppend>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512})
    table.push_back({fmt::format("{} tokens, 2 heads of 256 bf16", tokens),
                     [=](std::uint64_t seed) {
                       return make(seed, type_pairs()[1], {tokens, 1000, 4096, 2, 256, 256});
                     },
                     to_double(tokens) * 1024 * 2 * 2, 0});
  return table;
}

}  // namespace sluice::runner
