#include "sluice/ops/cache/turboquant_append.h"

#include <algorithm>

#include "base/error.h"
#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/paged_case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

struct Settings {
  std::int64_t tokens = 5;
  std::int64_t heads = 2;
  std::int64_t width = 64;
  std::int64_t slots = 16;
  std::int64_t start = 0;
  std::int64_t k_bits = 4;
  std::int64_t v_bits = 4;
  bool matched = true;
  bool signs = true;
  ops::DType k_type = ops::DType::f32;
  ops::DType v_type = ops::DType::f32;
};

// The caches of `pool` sequences, or of one without a pool dimension.
void add_caches(OpFile& file, Random& random, const Settings& s, std::int64_t pool) {
  const auto shape = [&](std::initializer_list<std::int64_t> inner) {
    ops::Shape all;
    if (pool > 0) all.push_back(pool);
    for (const std::int64_t dim : inner) all.push_back(dim);
    return all;
  };
  const auto bytes = [&](std::int64_t bits) {
    return random_bytes(random, ops::DType::u8, shape({s.heads, s.slots, s.width * bits / 8}));
  };
  file.tensors["k_codes"] = bytes(s.k_bits);
  file.tensors["v_codes"] = bytes(s.v_bits);
  file.tensors["k_norms"] = normal(random, ops::DType::f32, shape({s.heads, s.slots}));
  file.tensors["v_norms"] = normal(random, ops::DType::f32, shape({s.heads, s.slots}));
}

OpFile make(std::uint64_t seed, const Settings& s, std::int64_t pool = 0) {
  Random random(seed);
  OpFile file;
  file.tensors["k"] = normal(random, s.k_type, {s.tokens, s.heads, s.width});
  file.tensors["v"] = normal(random, s.v_type, {s.tokens, s.heads, s.width});
  if (s.signs) file.tensors["signs"] = random_bytes(random, ops::DType::u8, {s.width / 8});
  add_caches(file, random, s, pool);
  file.attributes["k_bits"] = std::to_string(s.k_bits);
  file.attributes["v_bits"] = std::to_string(s.v_bits);
  file.attributes["norm"] = s.matched ? "matched" : "plain";
  if (pool == 0) file.attributes["start"] = std::to_string(s.start);
  return file;
}

// Four sequences, one of them empty and one longer than its ring, in a pool of five.
OpFile make_sequences(std::uint64_t seed, bool slots) {
  Settings s;
  s.tokens = 30;
  OpFile file = make(seed, s, 5);
  file.tensors["seq_starts"] = indices({0, 3, 3, 10, 30});
  file.tensors["start"] = indices({15, 2, 1000000007, 8});
  if (slots) file.tensors["slots"] = indices({4, 2, 0, 1});
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::TurboquantAppend>() {
  std::vector<Case> table;
  const auto add = [&](std::string label, const Settings& settings) {
    table.push_back({std::move(label), [=](std::uint64_t seed) { return make(seed, settings); }});
  };
  for (const std::int64_t bits : {2, 3, 4, 5, 6, 8}) {
    Settings s;
    s.k_bits = bits;
    s.v_bits = bits == 8 ? 2 : bits;
    s.start = 7;
    add(fmt::format("{} bits", bits), s);
    s.matched = false;
    s.signs = false;
    s.k_type = s.v_type = ops::DType::bf16;
    add(fmt::format("{} bits bf16 plain no signs", bits), s);
  }
  for (const bool matched : {false, true}) {
    Settings s;
    s.k_bits = matched ? 16 : 8;
    s.v_bits = 16;
    s.matched = matched;
    add(fmt::format("{}+16 bits{}", s.k_bits, matched ? "" : " plain"), s);
  }
  for (const std::int64_t tokens : {1, 2, 15, 16, 17, 63, 64, 65, 257})
    for (const std::int64_t start : {0, 14, 1234567}) {
      Settings s;
      s.tokens = tokens;
      s.start = start;
      s.width = 32;
      add(fmt::format("{} tokens at {} into 16 slots", tokens, start), s);
    }
  for (const auto& [k_bits, v_bits] : {std::pair{4, 4}, std::pair{8, 8}, std::pair{8, 4}, std::pair{4, 16}})
    for (const std::int64_t width : {128, 256, 512}) {
      Settings s;
      s.tokens = 45;
      s.heads = 3;
      s.width = width;
      s.slots = 37;
      s.start = 20;
      s.k_bits = k_bits;
      s.v_bits = v_bits;
      s.k_type = s.v_type = ops::DType::bf16;
      add(fmt::format("45 tokens of 3 x {} bf16 into 37 slots, {}+{} bits", width, k_bits, v_bits), s);
    }
  Settings mixed;
  mixed.k_type = ops::DType::bf16;
  mixed.width = 1024;
  mixed.slots = 1;
  add("bf16 keys, f32 values, one slot", mixed);
  for (const bool slots : {false, true})
    table.push_back({slots ? "sequences with slots" : "sequences",
                     [=](std::uint64_t seed) { return make_sequences(seed, slots); }});
  add_paged_cases(table, ops::TurboquantAppend::kName);
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::TurboquantAppend>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512, 8192, 65536}) {
    Settings s;
    s.tokens = tokens;
    s.width = 256;
    s.slots = std::max<std::int64_t>(32768, tokens);
    s.k_type = s.v_type = ops::DType::bf16;
    const double vectors = to_double(tokens) * 4;
    table.push_back({fmt::format("{} tokens of 2 x 256 bf16, 4 bits", tokens),
                     [=](std::uint64_t seed) { return make(seed, s); }, vectors * (512 + 128 + 4),
                     vectors * 256 * 10});
  }
  return table;
}

}  // namespace sluice::runner
