#include "sluice/ops/cache/mla_turboquant_append.h"

#include "base/error.h"
#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/paged_case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Sizes {
  std::int64_t tokens = 5;
  std::int64_t start = 2;
  std::int64_t rows = 12;
  std::int64_t rank = 64;
  std::int64_t rope = 8;
  std::int64_t bits = 4;
  bool matched = true;
  bool signs = true;
  DType type = DType::f32;
  DType rope_type = DType::bf16;
};

OpFile make(std::uint64_t seed, const Sizes& s) {
  Random random(seed);
  OpFile file;
  file.tensors["kv_latent"] = normal(random, s.type, {s.tokens, s.rank});
  file.tensors["k_pe"] = normal(random, s.type, {s.tokens, s.rope});
  if (s.signs) file.tensors["signs"] = random_bytes(random, DType::u8, {s.rank / 8});
  file.tensors["latent_codes"] = random_bytes(random, DType::u8, {s.rows, s.rank * s.bits / 8});
  file.tensors["latent_norms"] = normal(random, DType::f32, {s.rows});
  file.tensors["rope_cache"] = normal(random, s.rope_type, {s.rows, s.rope});
  file.attributes["bits"] = std::to_string(s.bits);
  file.attributes["norm"] = s.matched ? "matched" : "plain";
  file.attributes["start"] = std::to_string(s.start);
  return file;
}

OpFile make_pool(std::uint64_t seed) {
  Random random(seed);
  OpFile file;
  file.tensors["kv_latent"] = normal(random, DType::f32, {8, 64});
  file.tensors["k_pe"] = normal(random, DType::f32, {8, 6});
  file.tensors["latent_codes"] = random_bytes(random, DType::u8, {3, 20, 40});
  file.tensors["latent_norms"] = normal(random, DType::f32, {3, 20});
  file.tensors["rope_cache"] = normal(random, DType::bf16, {3, 20, 6});
  file.tensors["seq_starts"] = indices({0, 7, 7, 8});
  file.tensors["start"] = indices({13, 20, 0});
  file.tensors["slots"] = indices({2, 0, 1});
  file.attributes["bits"] = "5";
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::MlaTurboquantAppend>() {
  std::vector<Case> table;
  const auto add = [&](const std::string& label, const Sizes& s) {
    table.push_back({label, [=](std::uint64_t seed) { return make(seed, s); }});
  };
  for (const std::int64_t bits : {2, 3, 4, 5, 6, 8}) {
    Sizes s;
    s.bits = bits;
    add(fmt::format("{} bits", bits), s);
    s.matched = s.signs = false;
    s.type = DType::bf16;
    s.rope_type = DType::f32;
    add(fmt::format("{} bits bf16 plain no signs", bits), s);
  }
  for (const auto& [tokens, start, rows] :
       {std::tuple{1, 0, 8}, std::tuple{1, 7, 8}, std::tuple{65, 0, 65}, std::tuple{257, 100, 400}}) {
    Sizes s;
    s.tokens = tokens;
    s.start = start;
    s.rows = rows;
    s.rank = 512;
    s.rope = 64;
    s.type = DType::bf16;
    add(fmt::format("{} tokens from {} of {}", tokens, start, rows), s);
  }
  table.push_back({"pool", make_pool});
  add_paged_cases(table, ops::MlaTurboquantAppend::kName);
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::MlaTurboquantAppend>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512}) {
    Sizes s;
    s.tokens = tokens;
    s.start = 1000;
    s.rows = 4096;
    s.rank = 512;
    s.rope = 64;
    s.type = DType::bf16;
    table.push_back({fmt::format("{} tokens, rank 512+64 bf16, 4 bits", tokens),
                     [=](std::uint64_t seed) { return make(seed, s); },
                     to_double(tokens) * (576 * 2 + 256 + 4 + 128), 0});
  }
  return table;
}

}  // namespace sluice::runner
