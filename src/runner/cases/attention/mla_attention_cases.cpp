#include "sluice/ops/attention/mla_attention.h"

#include <cmath>

#include "base/error.h"
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
  std::int64_t rank = 64;
  std::int64_t rope = 16;
  std::int64_t spare_rows = 3;  // after the last visible row; they hold NaN
  DType q = DType::f32;
  DType latent = DType::f32;
  DType rope_type = DType::f32;
  double scale = 0.1;
  double magnitude = 1;
};

HostTensor cache(Random& random, DType type, const ops::Shape& shape, std::int64_t seen, double magnitude) {
  HostTensor tensor = normal(random, type, shape, magnitude);
  for (std::int64_t i = seen * shape[1]; i < shape.elements(); ++i) set(tensor, i, std::nan(""));
  return tensor;
}

OpFile make(std::uint64_t seed, const Sizes& s) {
  Random random(seed);
  OpFile file;
  const std::int64_t seen = s.start + s.tokens;
  file.tensors["q_latent"] = normal(random, s.q, {s.tokens, s.heads, s.rank}, s.magnitude);
  file.tensors["q_pe"] = normal(random, s.q, {s.tokens, s.heads, s.rope}, s.magnitude);
  file.tensors["latent_cache"] = cache(random, s.latent, {seen + s.spare_rows, s.rank}, seen, s.magnitude);
  file.tensors["rope_cache"] = cache(random, s.rope_type, {seen + s.spare_rows, s.rope}, seen, s.magnitude);
  file.attributes["start"] = std::to_string(s.start);
  file.attributes["scale"] = fmt::format("{}", s.scale);
  return file;
}

// Three sequences, one of them empty, in a pool of four caches.
OpFile make_pool(std::uint64_t seed, DType type) {
  Random random(seed);
  OpFile file;
  file.tensors["q_latent"] = normal(random, type, {18, 5, 64});
  file.tensors["q_pe"] = normal(random, type, {18, 5, 8});
  file.tensors["latent_cache"] = normal(random, type, {4, 600, 64});
  file.tensors["rope_cache"] = normal(random, type, {4, 600, 8});
  file.tensors["seq_starts"] = indices({0, 17, 17, 18});
  file.tensors["start"] = indices({0, 9, 570});
  file.tensors["slots"] = indices({3, 0, 1});
  file.attributes["scale"] = "0.1";
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::MlaAttention>() {
  std::vector<Case> table;
  const auto add = [&](const std::string& label, const Sizes& s) {
    table.push_back({label, [=](std::uint64_t seed) { return make(seed, s); }});
  };
  for (const auto& [q, latent, rope] :
       {std::tuple{DType::f32, DType::f32, DType::f32}, std::tuple{DType::f32, DType::bf16, DType::bf16},
        std::tuple{DType::bf16, DType::bf16, DType::bf16}, std::tuple{DType::bf16, DType::bf16, DType::f32},
        std::tuple{DType::f32, DType::f32, DType::bf16}}) {
    const std::string types = fmt::format(" {} {} {}", name(q), name(latent), name(rope));
    const auto sized = [&, q = q, latent = latent, rope = rope](std::int64_t tokens, std::int64_t start,
                                                                std::int64_t heads, std::int64_t rank,
                                                                std::int64_t rope_width) {
      Sizes s;
      s.tokens = tokens;
      s.start = start;
      s.heads = heads;
      s.rank = rank;
      s.rope = rope_width;
      s.q = q;
      s.latent = latent;
      s.rope_type = rope;
      add(fmt::format("{} queries from {}, {} heads, rank {}+{}{}", tokens, start, heads, rank, rope_width,
                      types),
          s);
    };
    sized(1, 0, 1, 32, 8);
    sized(1, 150, 16, 512, 64);
    sized(1, 1030, 5, 96, 10);
    sized(2, 511, 7, 33, 3);
    sized(65, 100, 3, 40, 16);
    sized(63, 0, 4, 32, 16);
    if (q == DType::f32 || rope == DType::f32) continue;
    sized(1, 520, 70, 512, 64);
    sized(18, 60, 70, 512, 64);
    sized(37, 100, 3, 512, 64);
  }
  Sizes sharp;
  sharp.tokens = 5;
  sharp.start = 300;
  sharp.magnitude = 30;
  sharp.scale = 1;
  add("scores of 1e4", sharp);
  table.push_back({"pool f32", [](std::uint64_t seed) { return make_pool(seed, DType::f32); }});
  table.push_back({"pool bf16", [](std::uint64_t seed) { return make_pool(seed, DType::bf16); }});
  add_paged_cases(table, ops::MlaAttention::kName);
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::MlaAttention>() {
  std::vector<BenchCase> table;
  for (const auto& [tokens, rows] : {std::pair{1, 4096}, std::pair{1, 32768}, std::pair{64, 2048}}) {
    Sizes s;
    s.tokens = tokens;
    s.start = rows - tokens;
    s.heads = 128;
    s.rank = 512;
    s.rope = 64;
    s.spare_rows = 0;
    s.q = s.latent = s.rope_type = DType::bf16;
    s.scale = 0.07;
    const double pairs = tokens * (rows - (tokens - 1) / 2.0) * 128;
    table.push_back({fmt::format("{} queries, {} rows, 128 heads, rank 512+64", tokens, rows),
                     [=](std::uint64_t seed) { return make(seed, s); },
                     rows * 576.0 * 2 + tokens * 128 * (576 + 512) * 2.0, pairs * (576 + 512) * 2});
  }
  add_paged_bench_cases(table, ops::MlaAttention::kName, 256);
  return table;
}

}  // namespace sluice::runner
