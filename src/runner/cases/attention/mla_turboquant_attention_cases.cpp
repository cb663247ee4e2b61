#include "sluice/ops/attention/mla_turboquant_attention.h"

#include <cmath>

#include "base/error.h"
#include "runner/case.h"
#include "runner/paged_case.h"
#include "runner/random_tensor.h"
#include "sluice/ops/fresh_rows.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Sizes {
  std::int64_t tokens = 1;
  std::int64_t start = 70;
  std::int64_t heads = 4;
  std::int64_t rank = 64;
  std::int64_t rope = 16;
  std::int64_t spare_rows = 3;  // after the last visible row; they hold NaN
  std::int64_t bits = 4;
  bool signs = true;
  bool fresh = false;  // the call's own latents are passed beside the cache
  DType q = DType::f32;
  DType rope_type = DType::bf16;
  double scale = 0.1;
};

OpFile make(std::uint64_t seed, const Sizes& s) {
  Random random(seed);
  OpFile file;
  const std::int64_t seen = s.start + s.tokens;
  const std::int64_t rows = seen + s.spare_rows;
  const double norm = std::sqrt(s.rank);
  file.tensors["q_latent"] = normal(random, s.q, {s.tokens, s.heads, s.rank});
  file.tensors["q_pe"] = normal(random, s.q, {s.tokens, s.heads, s.rope});
  if (s.signs) file.tensors["signs"] = random_bytes(random, DType::u8, {s.rank / 8});
  if (s.fresh) file.tensors["latent_new"] = normal(random, s.q, {s.tokens, s.rank});
  file.tensors["latent_codes"] = random_bytes(random, DType::u8, {rows, s.rank * s.bits / 8});
  file.tensors["latent_norms"] = uniform(random, DType::f32, {rows}, 0.5 * norm, 1.5 * norm);
  file.tensors["rope_cache"] = normal(random, s.rope_type, {rows, s.rope});
  for (std::int64_t i = s.fresh ? ops::first_fresh_row(seen - 1, s.start) : seen; i < rows; ++i)
    set(file.tensors["latent_norms"], i, std::nan(""));
  for (std::int64_t i = seen * s.rope; i < rows * s.rope; ++i)
    set(file.tensors["rope_cache"], i, std::nan(""));
  file.attributes["bits"] = std::to_string(s.bits);
  file.attributes["start"] = std::to_string(s.start);
  file.attributes["scale"] = fmt::format("{}", s.scale);
  return file;
}

// Three sequences, one of them empty, in a pool of four caches.
OpFile make_pool(std::uint64_t seed, bool fresh) {
  Random random(seed);
  OpFile file;
  file.tensors["q_latent"] = normal(random, DType::f32, {18, 5, 64});
  file.tensors["q_pe"] = normal(random, DType::f32, {18, 5, 8});
  if (fresh) file.tensors["latent_new"] = normal(random, DType::f32, {18, 64});
  file.tensors["latent_codes"] = random_bytes(random, DType::u8, {4, 600, 24});
  file.tensors["latent_norms"] = uniform(random, DType::f32, {4, 600}, 4, 12);
  file.tensors["rope_cache"] = normal(random, DType::bf16, {4, 600, 8});
  file.tensors["seq_starts"] = indices({0, 17, 17, 18});
  file.tensors["start"] = indices({0, 9, 570});
  file.tensors["slots"] = indices({3, 0, 1});
  file.attributes["bits"] = "3";
  file.attributes["scale"] = "0.1";
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::MlaTurboquantAttention>() {
  std::vector<Case> table;
  const auto add = [&](const Sizes& s) {
    table.push_back({fmt::format("{} queries from {}, {} heads, rank {}+{}, {} bits {}{}{}", s.tokens,
                                 s.start, s.heads, s.rank, s.rope, s.bits, name(s.q),
                                 s.signs ? "" : ", no signs", s.fresh ? ", own rows" : ""),
                     [=](std::uint64_t seed) { return make(seed, s); }});
  };
  for (const std::int64_t bits : {2, 3, 4, 5, 6, 8})
    for (const std::int64_t rank : {32, 256, 512}) {
      Sizes s;
      s.bits = bits;
      s.rank = rank;
      s.tokens = 2;
      s.rope_type = rank == 32 ? DType::f32 : DType::bf16;
      s.q = rank == 256 ? DType::bf16 : DType::f32;
      add(s);
    }
  for (const bool fresh : {false, true})
    for (const auto& [tokens, start, heads] :
         {std::tuple{1, 0, 1}, std::tuple{1, 511, 128}, std::tuple{3, 62, 7}, std::tuple{65, 0, 3},
          std::tuple{40, 600, 16}, std::tuple{150, 64, 2}, std::tuple{70, 450, 5}}) {
      Sizes s;
      s.fresh = fresh;
      s.tokens = tokens;
      s.start = start;
      s.heads = heads;
      s.signs = heads != 7;
      s.rope = heads == 7 ? 10 : 16;
      add(s);
    }
  for (const bool fresh : {false, true})
    table.push_back(
        {fresh ? "pool, own rows" : "pool", [=](std::uint64_t seed) { return make_pool(seed, fresh); }});
  add_paged_cases(table, ops::MlaTurboquantAttention::kName);
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::MlaTurboquantAttention>() {
  Sizes s;
  s.start = 4095;
  s.heads = 128;
  s.rank = 512;
  s.rope = 64;
  s.spare_rows = 0;
  s.q = DType::bf16;
  s.scale = 0.07;
  return {{"1 query, 4096 rows, 128 heads, rank 512+64, 4 bits",
           [=](std::uint64_t seed) { return make(seed, s); }, 4096 * (256.0 + 4 + 128),
           4096.0 * 128 * (576 + 512) * 2}};
}

}  // namespace sluice::runner
