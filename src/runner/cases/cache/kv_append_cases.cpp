#include "base/integer_cast.h"
#include "sluice/ops/cache/kv_append.h"

#include "base/error.h"
#include "runner/case.h"
#include "runner/paged_case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Sizes {
  std::int64_t tokens;
  std::int64_t start;
  std::int64_t rows;
  std::int64_t heads;
  std::int64_t width;
  std::int64_t value_width;
  double scale = 1;
};

OpFile make(std::uint64_t seed, DType type, DType cache, const Sizes& sizes) {
  const auto& [tokens, start, rows, heads, width, value_width, scale] = sizes;
  Random random(seed);
  OpFile file;
  file.tensors["k"] = normal(random, type, {tokens, heads, width}, scale);
  file.tensors["v"] = normal(random, type, {tokens, heads, value_width}, scale);
  file.tensors["k_cache"] = normal(random, cache, {rows, heads, width});
  file.tensors["v_cache"] = normal(random, cache, {rows, heads, value_width});
  file.attributes["start"] = std::to_string(start);
  return file;
}

OpFile make_pool(std::uint64_t seed, DType type, DType cache) {
  Random random(seed);
  OpFile file;
  file.tensors["k"] = normal(random, type, {9, 2, 24});
  file.tensors["v"] = normal(random, type, {9, 2, 20});
  file.tensors["k_cache"] = normal(random, cache, {5, 16, 2, 24});
  file.tensors["v_cache"] = normal(random, cache, {5, 16, 2, 20});
  file.tensors["seq_starts"] = indices({0, 5, 5, 6, 9});
  file.tensors["start"] = indices({11, 16, 0, 7});
  file.tensors["slots"] = indices({4, 1, 0, 3});
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::KvAppend>() {
  std::vector<Case> table;
  for (const auto& [type, cache] : {std::pair{DType::f32, DType::f32}, std::pair{DType::bf16, DType::bf16},
                                    std::pair{DType::f32, DType::bf16}, std::pair{DType::bf16, DType::f32}}) {
    const std::string types = fmt::format(" {} to {}", name(type), name(cache));
    const auto add = [&, type = type, cache = cache](const std::string& label, const Sizes& sizes) {
      table.push_back({label + types, [=](std::uint64_t seed) { return make(seed, type, cache, sizes); }});
    };
    add("first token", {1, 0, 8, 2, 64, 64});
    add("last row", {1, 7, 8, 1, 33, 17});
    add("fills the cache", {65, 0, 65, 3, 40, 24});
    add("in the middle", {257, 100, 400, 2, 16, 16});
    add("huge", {3, 2, 9, 1, 8, 8, 1e30});
    add("tiny", {3, 2, 9, 1, 8, 8, 1e-40});
    table.push_back({"pool" + types, [type = type, cache = cache](std::uint64_t seed) {
                       return make_pool(seed, type, cache);
                     }});
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
                       return make(seed, DType::bf16, DType::bf16, {tokens, 1000, 4096, 2, 256, 256});
                     },
                     to_double(tokens) * 1024 * 2 * 2, 0});
  return table;
}

}  // namespace sluice::runner
