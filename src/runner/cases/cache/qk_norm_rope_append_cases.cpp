// Cases of the two appends that rotate what they append. Codes must be equal, but they jump where a number
// crosses a boundary, so the BF16 keys of packed caches are chosen so that every backend rounds them alike: 1
// and -1 at position 0, which become the weights with their signs. F32 keys are arbitrary: the tables are too
// small for a jump to occur.
#include <cmath>

#include "base/error.h"
#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/paged_case.h"
#include "runner/random_tensor.h"
#include "sluice/ops/cache/qk_norm_rope_append.h"
#include "sluice/ops/cache/qk_norm_rope_turboquant_append.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Sample {
  std::int64_t tokens = 5;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t width = 64;
  std::int64_t value_width = 64;
  std::int64_t pairs = 16;
  std::int64_t rows = 16;
  std::int64_t start = 0;
  DType type = DType::f32;
  DType cache = DType::f32;
  std::int64_t k_bits = 4;
  std::int64_t v_bits = 4;
  bool signs = true;
  bool sequences = false;
};

// Four sequences, one of them empty, in a pool of five.
void cut(OpFile& file, std::initializer_list<std::int32_t> starts) {
  file.attributes.erase("start");
  file.tensors["seq_starts"] = indices({0, 3, 3, 4, 9});
  file.tensors["slots"] = indices({4, 2, 0, 1});
  file.tensors["start"] = indices(starts);
}

ops::Shape pooled(const Sample& s, std::initializer_list<std::int64_t> inner) {
  ops::Shape shape;
  if (s.sequences) shape.push_back(5);
  for (const std::int64_t dim : inner) shape.push_back(dim);
  return shape;
}

OpFile make_turned(Random& random, const Sample& s, bool rounds_alike) {
  OpFile file;
  file.tensors["q"] = normal(random, s.type, {s.tokens, s.heads, s.width});
  file.tensors["k"] = normal(random, s.type, {s.tokens, s.kv_heads, s.width});
  file.tensors["v"] = normal(random, s.type, {s.tokens, s.kv_heads, s.value_width});
  file.tensors["q_weight"] = normal(random, DType::bf16, {s.width}, 0.3, 1);
  file.tensors["k_weight"] = normal(random, DType::bf16, {s.width}, 0.3, 1);
  HostTensor inv_freq(DType::f32, {s.pairs});
  for (std::int64_t i = 0; i < s.pairs; ++i)
    set(inv_freq, i, std::pow(1e7, -to_double(i) / to_double(s.pairs)));
  file.tensors["inv_freq"] = std::move(inv_freq);
  file.tensors["positions"] = integers(random, {s.tokens}, rounds_alike ? 1 : 262144);
  HostTensor& k = file.tensors["k"];
  for (std::int64_t i = 0; rounds_alike && i < k.shape.elements(); ++i) set(k, i, k.at(i) < 0 ? -1 : 1);
  file.attributes = {{"eps", "1e-6"}, {"mscale", rounds_alike ? "1" : "1.25"}};
  file.attributes["start"] = std::to_string(s.start);
  return file;
}

OpFile make_plain(std::uint64_t seed, const Sample& s) {
  Random random(seed);
  OpFile file = make_turned(random, s, false);
  file.tensors["k_cache"] = normal(random, s.cache, pooled(s, {s.rows, s.kv_heads, s.width}));
  file.tensors["v_cache"] = normal(random, s.cache, pooled(s, {s.rows, s.kv_heads, s.value_width}));
  if (s.sequences) cut(file, {11, 16, 0, 7});
  return file;
}

OpFile make_packed(std::uint64_t seed, const Sample& s) {
  Random random(seed);
  OpFile file = make_turned(random, s, s.type == DType::bf16);
  if (s.signs) file.tensors["signs"] = random_bytes(random, DType::u8, {s.width / 8});
  for (const auto& [side, bits] : {std::pair("k", s.k_bits), std::pair("v", s.v_bits)}) {
    const std::string name = side;
    file.tensors[name + "_codes"] =
        random_bytes(random, DType::u8, pooled(s, {s.kv_heads, s.rows, s.width * bits / 8}));
    file.tensors[name + "_norms"] = normal(random, DType::f32, pooled(s, {s.kv_heads, s.rows}));
    file.attributes[name + "_bits"] = std::to_string(bits);
  }
  file.attributes["norm"] = s.signs ? "matched" : "plain";
  if (s.sequences) cut(file, {15, 2, 1000000007, 14});
  return file;
}

using Make = OpFile (*)(std::uint64_t seed, const Sample& sample);

void add(std::vector<Case>& table, Make make, const std::string& label, const Sample& sample) {
  table.push_back({fmt::format("{} {}", label, name(sample.type)),
                   [=](std::uint64_t seed) { return make(seed, sample); }});
}

std::vector<BenchCase> timed(Make make, double cached_bytes) {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 32, 512}) {
    Sample s{.tokens = tokens, .heads = 16, .width = 256, .value_width = 256, .pairs = 32, .rows = 4096};
    s.type = s.cache = DType::bf16;
    const double count = tokens;
    table.push_back({fmt::format("{} x 16/2 heads of 256 bf16", tokens),
                     [=](std::uint64_t seed) { return make(seed, s); },
                     count * (18 * 512 * 2 + 2 * 512 + 4 * cached_bytes), count * 18 * 256 * 4});
  }
  return table;
}

}  // namespace

template <>
std::vector<Case> cases<ops::QkNormRopeAppend>() {
  std::vector<Case> table;
  for (const DType type : {DType::f32, DType::bf16}) {
    add(table, make_plain, "one token", {.tokens = 1, .type = type, .cache = type});
    add(table, make_plain, "256 of which 64, last rows",
        {.heads = 16,
         .width = 256,
         .value_width = 128,
         .pairs = 32,
         .start = 11,
         .type = type,
         .cache = type});
    add(table, make_plain, "odd widths",
        {.heads = 3,
         .kv_heads = 3,
         .width = 77,
         .value_width = 33,
         .pairs = 29,
         .type = type,
         .cache = type});
    add(table, make_plain, "257 tokens",
        {.tokens = 257, .rows = 300, .start = 40, .type = type, .cache = type});
    add(table, make_plain, "another type of cache",
        {.type = type, .cache = type == DType::f32 ? DType::bf16 : DType::f32});
    add(table, make_plain, "sequences", {.tokens = 9, .type = type, .cache = type, .sequences = true});
  }
  add_paged_cases(table, ops::QkNormRopeAppend::kName);
  return table;
}

template <>
std::vector<Case> cases<ops::QkNormRopeTurboquantAppend>() {
  std::vector<Case> table;
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const std::int64_t bits : {2, 3, 4, 5, 6, 8, 16})
      add(table, make_packed, fmt::format("{} bits", bits),
          {.start = 14,
           .type = type,
           .k_bits = bits == 16 ? 8 : bits,
           .v_bits = bits,
           .signs = bits % 2 == 0});
    for (const std::int64_t width : {32, 128, 256, 512, 1024})
      for (const auto& [k_bits, v_bits] : {std::pair{4, 4}, std::pair{8, 4}, std::pair{4, 16}})
        add(table, make_packed, fmt::format("{} wide, {}+{} bits", width, k_bits, v_bits),
            {.kv_heads = 1,
             .width = width,
             .value_width = width,
             .start = 1234567,
             .type = type,
             .k_bits = k_bits,
             .v_bits = v_bits});
    for (const std::int64_t tokens : {1, 2, 15, 33, 65})
      add(table, make_packed, fmt::format("{} tokens into 16 slots", tokens),
          {.tokens = tokens, .kv_heads = 1, .width = 128, .value_width = 128, .start = 3, .type = type});
    for (const std::int64_t width : {64, 256})
      add(table, make_packed, fmt::format("sequences, {} wide", width),
          {.tokens = 9, .width = width, .value_width = width, .type = type, .sequences = true});
  }
  add_paged_cases(table, ops::QkNormRopeTurboquantAppend::kName);
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::QkNormRopeAppend>() {
  return timed(make_plain, 512);
}

template <>
std::vector<BenchCase> bench_cases<ops::QkNormRopeTurboquantAppend>() {
  return timed(make_packed, 132);
}

}  // namespace sluice::runner
