#include "sluice/ops/delta/delta_step.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Sizes {
  std::int64_t tokens = 1;
  std::int64_t key_heads = 2;
  std::int64_t value_heads = 4;
  std::int64_t key_width = 128;
  std::int64_t value_width = 128;
  std::int64_t taps = 4;
  DType parameters = DType::f32;
  double scale = 1;

  std::int64_t channels() const { return 2 * key_heads * key_width + value_heads * value_width; }
};

// `pool` 0: one sequence without a pool.
OpFile make(std::uint64_t seed, DType type, const Sizes& s, std::int64_t pool = 0) {
  Random random(seed);
  OpFile file;
  const auto pooled = [&](ops::Shape shape) {
    if (pool == 0) return shape;
    ops::Shape all = {pool};
    for (int d = 0; d < shape.rank(); ++d) all.push_back(shape[d]);
    return all;
  };
  file.tensors["qkv"] = normal(random, type, {s.tokens, s.channels()}, s.scale);
  file.tensors["z"] = normal(random, type, {s.tokens, s.value_heads, s.value_width}, 2);
  file.tensors["a"] = normal(random, type, {s.tokens, s.value_heads}, 2);
  file.tensors["b"] = normal(random, type, {s.tokens, s.value_heads}, 2);
  file.tensors["conv_weight"] = normal(random, s.parameters, {s.channels(), s.taps}, 0.5);
  file.tensors["A_log"] = normal(random, s.parameters, {s.value_heads}, 1);
  file.tensors["dt_bias"] = normal(random, s.parameters, {s.value_heads});
  file.tensors["norm_weight"] = normal(random, s.parameters, {s.value_width}, 0.3, 1);
  file.tensors["conv_state"] = normal(random, DType::f32, pooled({s.taps - 1, s.channels()}), s.scale);
  file.tensors["state"] =
      normal(random, DType::f32, pooled({s.value_heads, s.value_width, s.key_width}), 0.3 * s.scale);
  file.attributes = {{"qk_eps", "1e-6"}, {"eps", "1e-6"}};
  return file;
}

// One token each of five sequences, or parts of different lengths, one of them empty, in a pool of seven.
OpFile make_sequences(std::uint64_t seed, DType type, bool steps) {
  Sizes sizes;
  sizes.tokens = steps ? 5 : 12;
  OpFile file = make(seed, type, sizes, 7);
  file.tensors["seq_starts"] = steps ? indices({0, 1, 2, 3, 4, 5}) : indices({0, 1, 4, 4, 10, 12});
  file.tensors["slots"] = indices({6, 0, 3, 2, 5});
  return file;
}

// Many sequences with one token each, or with none, two and one in turn, in a shuffled pool.
OpFile make_many(std::uint64_t seed, DType type, const Sizes& of_one, std::int64_t sequences, bool steps) {
  Sizes sizes = of_one;
  HostTensor starts(DType::i32, {sequences + 1});
  HostTensor slots(DType::i32, {sequences});
  std::int64_t end = 0;
  set(starts, 0, 0);
  for (std::int64_t b = 0; b < sequences; ++b) {
    end += steps ? 1 : b * 2 % 3;
    set(starts, b + 1, to_double(end));
    set(slots, b, to_double(sequences - 1 - b));
  }
  sizes.tokens = end;
  OpFile file = make(seed, type, sizes, sequences);
  file.tensors["seq_starts"] = std::move(starts);
  file.tensors["slots"] = std::move(slots);
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::DeltaStep>() {
  std::vector<Case> table;
  for (const DType type : {DType::f32, DType::bf16}) {
    const std::string suffix = type == DType::f32 ? " f32" : " bf16";
    const auto add = [&](const std::string& label, const Sizes& sizes) {
      table.push_back({label + suffix, [=](std::uint64_t seed) { return make(seed, type, sizes); }});
    };
    for (const std::int64_t tokens : {1, 2, 3, 9}) add(std::to_string(tokens) + " tokens", {tokens});
    for (const std::int64_t ratio : {1, 2, 3, 4, 16})
      add("ratio " + std::to_string(ratio), {2, 2, 2 * ratio});
    for (const auto& [key_width, value_width] :
         {std::pair<std::int64_t, std::int64_t>{256, 32}, {32, 256}, {96, 160}, {128, 64}, {128, 256}})
      add(std::to_string(key_width) + " by " + std::to_string(value_width),
          {2, 1, 2, key_width, value_width});
    for (const std::int64_t taps : {1, 2, 5}) add(std::to_string(taps) + " taps", {3, 1, 2, 128, 128, taps});
    for (const DType parameters : {DType::bf16, DType::f16})
      add(std::string(name(parameters)) + " parameters", {2, 1, 2, 128, 128, 4, parameters});
    for (const double scale : {1e8, 1e-8})
      add(scale > 1 ? "huge" : "tiny", {2, 1, 2, 128, 128, 4, DType::f32, scale});
    for (const bool steps : {true, false})
      table.push_back({(steps ? "steps" : "sequences") + suffix,
                       [=](std::uint64_t seed) { return make_sequences(seed, type, steps); }});
    for (const std::int64_t ratio : {1, 2})
      table.push_back({"many sequences, ratio " + std::to_string(ratio) + suffix, [=](std::uint64_t seed) {
                         return make_many(seed, type, {1, 8, 8 * ratio}, 13, ratio == 1);
                       }});
  }
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::DeltaStep>() {
  std::vector<BenchCase> table;
  const Sizes sizes{1, 16, 32};
  const double states = 2.0 * 4 * (32 * 128 * 128 + 3 * 8192);
  table.push_back({"1 x 16/32 heads of 128 bf16",
                   [=](std::uint64_t seed) { return make(seed, DType::bf16, sizes); },
                   states + 8192 * (2 + 16) + 4096 * 4, 32 * 7 * 128 * 128});
  for (const std::int64_t sequences : {8, 32})
    table.push_back({std::to_string(sequences) + " sequences x 16/32 heads of 128 bf16",
                     [=](std::uint64_t seed) { return make_many(seed, DType::bf16, sizes, sequences, true); },
                     to_double(sequences) * (states + 8192 * 2 + 4096 * 4) + 8192 * 16,
                     to_double(sequences) * (32 * 7 * 128 * 128)});
  return table;
}

}  // namespace sluice::runner
