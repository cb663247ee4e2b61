#include "sluice/ops/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/paged_case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Sizes {
  std::int64_t tokens = 1;
  std::int64_t start = 0;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t width = 64;
  std::int64_t value_width = 64;
  std::int64_t window = 0;
  std::int64_t spare_rows = 3;  // after the last visible row
  DType q = DType::f32;
  DType k = DType::f32;
  DType v = DType::f32;
  double scale = 0;      // 0: 1/sqrt(width)
  double magnitude = 1;  // of queries and keys
};

// Fills rows of the cache that no query sees with NaN.
void poison(HostTensor& cache, std::int64_t slot_elements, std::int64_t slot, std::int64_t row_elements,
            std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin * row_elements; i < end * row_elements; ++i)
    set(cache, slot * slot_elements + i, std::nan(""));
}

OpFile make(std::uint64_t seed, const Sizes& s) {
  Random random(seed);
  OpFile file;
  const std::int64_t rows = s.start + s.tokens + s.spare_rows;
  file.tensors["q"] = normal(random, s.q, {s.tokens, s.heads, s.width}, s.magnitude);
  file.tensors["k_cache"] = normal(random, s.k, {rows, s.kv_heads, s.width}, s.magnitude);
  file.tensors["v_cache"] = normal(random, s.v, {rows, s.kv_heads, s.value_width});
  const std::int64_t seen_from = s.window > 0 ? std::max<std::int64_t>(0, s.start + 1 - s.window) : 0;
  for (const auto& [name, width] : {std::pair{"k_cache", s.width}, std::pair{"v_cache", s.value_width}}) {
    poison(file.tensors[name], 0, 0, s.kv_heads * width, 0, seen_from);
    poison(file.tensors[name], 0, 0, s.kv_heads * width, s.start + s.tokens, rows);
  }
  file.attributes["start"] = std::to_string(s.start);
  file.attributes["scale"] = fmt::format("{}", s.scale != 0 ? s.scale : 1 / std::sqrt(s.width));
  if (s.window > 0) file.attributes["window"] = std::to_string(s.window);
  return file;
}

// A long BF16 cache for one query. Its noise repeats: drawing every number would take longer than the run.
OpFile make_long(std::uint64_t seed, std::int64_t rows, std::int64_t heads, std::int64_t width) {
  Random random(seed);
  OpFile file;
  file.tensors["q"] = normal(random, DType::bf16, {1, heads, width});
  for (const std::string name : {"k_cache", "v_cache"}) {
    const HostTensor noise = normal(random, DType::bf16, {4099, width});
    HostTensor& cache = file.tensors[name] = HostTensor(DType::bf16, {rows, 2, width});
    for (std::size_t at = 0; at < cache.bytes.size(); at += noise.bytes.size())
      std::copy_n(noise.bytes.begin(), std::min(noise.bytes.size(), cache.bytes.size() - at),
                  cache.bytes.begin() + at);
  }
  file.attributes["start"] = std::to_string(rows - 1);
  file.attributes["scale"] = fmt::format("{}", 1 / std::sqrt(width));
  return file;
}

// Four sequences in a pool of six caches: a prompt, an empty one, a step, and a prompt after a prefix.
OpFile make_pool(std::uint64_t seed, DType type, DType cache, std::int64_t window) {
  constexpr std::int64_t kRows = 700;
  constexpr std::int64_t kTokens[] = {65, 0, 1, 17};
  constexpr std::int64_t kStarts[] = {0, 5, 640, 250};
  constexpr std::int64_t kSlots[] = {4, 0, 2, 5};
  Random random(seed);
  OpFile file;
  file.tensors["q"] = normal(random, type, {83, 6, 48});
  file.tensors["k_cache"] = normal(random, cache, {6, kRows, 2, 48});
  file.tensors["v_cache"] = normal(random, cache, {6, kRows, 2, 40});
  for (std::size_t b = 0; b < 4; ++b)
    for (const auto& [name, width] : {std::pair{"k_cache", 48}, std::pair{"v_cache", 40}})
      poison(file.tensors[name], kRows * 2 * width, kSlots[b], 2 * width, kStarts[b] + kTokens[b], kRows);
  file.tensors["seq_starts"] = indices({0, 65, 65, 66, 83});
  file.tensors["start"] = indices({0, 5, 640, 250});
  file.tensors["slots"] = indices({4, 0, 2, 5});
  file.attributes["scale"] = "0.15";
  if (window > 0) file.attributes["window"] = std::to_string(window);
  return file;
}

void add(std::vector<Case>& table, std::string label, const Sizes& sizes) {
  table.push_back({std::move(label), [=](std::uint64_t seed) { return make(seed, sizes); }});
}

void add_sizes(std::vector<Case>& table, DType q, DType cache, const std::string& suffix) {
  const auto with = [&](Sizes s) {
    s.q = q;
    s.k = s.v = cache;
    add(table,
        fmt::format("{} queries from {}, {}/{} heads, {}/{} wide{}{}", s.tokens, s.start, s.heads, s.kv_heads,
                    s.width, s.value_width, s.window > 0 ? fmt::format(", window {}", s.window) : "", suffix),
        s);
  };
  with({1, 0, 4, 2, 64, 64});
  with({1, 511, 8, 1, 64, 64});
  with({1, 512, 16, 2, 256, 256});
  with({1, 1300, 16, 1, 32, 32});
  with({2, 127, 3, 3, 33, 17});
  with({63, 0, 4, 4, 32, 32});
  with({64, 100, 6, 2, 40, 24});
  with({65, 480, 5, 1, 64, 96});
  with({257, 0, 2, 1, 16, 16});
  with({20, 600, 24, 1, 16, 48});
  with({3, 20, 2, 1, 1, 1});
  with({1, 900, 4, 2, 64, 64, 100});
  with({70, 500, 4, 2, 32, 32, 64});
  with({40, 0, 4, 1, 32, 32, 1});
  with({9, 3, 4, 1, 32, 32, 1000});
  // Complete heads of 64, 128 and 256: several parts of the cache, more heads than one tile, ragged tiles.
  with({2, 700, 6, 2, 128, 128});
  with({1, 1100, 20, 1, 256, 256, 600});
  with({65, 100, 6, 2, 256, 256});
  with({70, 40, 3, 1, 128, 128, 50});
  with({150, 3, 4, 2, 64, 64});
}

}  // namespace

template <>
std::vector<Case> cases<ops::Attention>() {
  std::vector<Case> table;
  add_sizes(table, DType::f32, DType::f32, " f32");
  add_sizes(table, DType::f32, DType::bf16, " f32 over bf16");
  add_sizes(table, DType::bf16, DType::bf16, " bf16");
  Sizes mixed;
  mixed.tokens = 10;
  mixed.start = 200;
  mixed.q = DType::bf16;
  mixed.k = DType::f32;
  mixed.v = DType::bf16;
  add(table, "bf16 queries, f32 keys, bf16 values", mixed);
  Sizes sharp;
  sharp.tokens = 20;
  sharp.start = 600;
  sharp.magnitude = 30;  // scores around +-1e4
  sharp.scale = 1;
  add(table, "scores of 1e4", sharp);
  // Half a unit in the last place of an F32 score of 1e4 is 5e-4: at that size, only clear winners are exact
  // to 1e-5.
  sharp.magnitude = 3;
  sharp.scale = -1;
  add(table, "negative scale", sharp);
  Sizes flat;
  flat.tokens = 20;
  flat.start = 600;
  flat.magnitude = 1e-20;
  add(table, "equal scores", flat);
  for (const std::int64_t window : {0, 30}) {
    const std::string suffix = window > 0 ? ", window" : "";
    table.push_back({"pool f32" + suffix,
                     [=](std::uint64_t seed) { return make_pool(seed, DType::f32, DType::f32, window); }});
    table.push_back({"pool bf16" + suffix,
                     [=](std::uint64_t seed) { return make_pool(seed, DType::bf16, DType::bf16, window); }});
  }
  add_paged_cases(table, ops::Attention::kName);
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::Attention>() {
  std::vector<BenchCase> table;
  const auto add_bench = [&](std::int64_t tokens, std::int64_t start, DType cache) {
    Sizes s;
    s.tokens = tokens;
    s.start = start;
    s.heads = 16;
    s.kv_heads = 2;
    s.width = s.value_width = 256;
    s.spare_rows = 0;
    s.q = DType::bf16;
    s.k = s.v = cache;
    const double rows = start + tokens;
    const double pairs = to_double(tokens) * (to_double(start) + (to_double(tokens) + 1) / 2);
    const double bytes = rows * 2 * 512 * to_double(size_bytes(cache)) + to_double(tokens) * 16 * 512 * 2;
    table.push_back(
        {fmt::format("{} queries, {} rows, 16/2 heads of 256, {} cache", tokens, start + tokens, name(cache)),
         [=](std::uint64_t seed) { return make(seed, s); }, bytes, pairs * 16 * 512 * 2});
  };
  add_bench(1, 4095, DType::bf16);
  add_bench(1, 32767, DType::bf16);
  add_bench(1, 32767, DType::f32);
  add_bench(512, 0, DType::bf16);
  add_bench(512, 3584, DType::bf16);
  for (const std::int64_t heads : {16, 32}) {
    constexpr std::int64_t kRows = 262144;
    table.push_back({fmt::format("1 queries, {} rows, {}/2 heads of 256, BF16 cache", kRows, heads),
                     [=](std::uint64_t seed) { return make_long(seed, kRows, heads, 256); }, kRows * 2048.0,
                     to_double(kRows * heads) * 1024});
  }
  add_paged_bench_cases(table, ops::Attention::kName, 256);
  return table;
}

}  // namespace sluice::runner
