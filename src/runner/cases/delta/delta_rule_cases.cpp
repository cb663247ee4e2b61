#include "sluice/ops/delta/delta_rule.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Sizes {
  std::int64_t tokens;
  std::int64_t key_heads = 2;
  std::int64_t value_heads = 4;
  std::int64_t key_width = 64;
  std::int64_t value_width = 32;
};

enum class Decay { usual, none, resets, steep };

// Keys of length 1 and queries of length Dk^-0.5, as the model's norm leaves them.
HostTensor unit_rows(Random& random, DType type, const ops::Shape& shape, double length) {
  HostTensor rows = normal(random, DType::f32, shape);
  const std::int64_t width = shape.back();
  HostTensor result(type, shape);
  for (std::int64_t r = 0; r < shape.elements() / width; ++r) {
    double squares = 0;
    for (std::int64_t i = 0; i < width; ++i) squares += rows.at(r * width + i) * rows.at(r * width + i);
    for (std::int64_t i = 0; i < width; ++i)
      set(result, r * width + i, rows.at(r * width + i) * length / std::sqrt(squares));
  }
  return result;
}

HostTensor decays(Random& random, Decay decay, const ops::Shape& shape) {
  HostTensor g = uniform(random, DType::f32, shape, -0.3, -0.001);
  const double infinity = std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    if (decay == Decay::none) set(g, i, 0);
    if (decay == Decay::steep) set(g, i, -random.uniform(0, 1) * (random.integer(4) == 0 ? 1e4 : 3));
    if (decay == Decay::resets && random.integer(5) == 0) set(g, i, random.integer(2) == 0 ? -infinity : 0);
  }
  return g;
}

OpFile make(std::uint64_t seed, DType type, const Sizes& sizes, const std::string& form, Decay decay,
            double value_scale = 1) {
  Random random(seed);
  OpFile file;
  const ops::Shape keys = {sizes.tokens, sizes.key_heads, sizes.key_width};
  file.tensors["q"] = unit_rows(random, type, keys, 1 / std::sqrt(sizes.key_width));
  file.tensors["k"] = unit_rows(random, type, keys, 1);
  file.tensors["v"] = normal(random, type, {sizes.tokens, sizes.value_heads, sizes.value_width}, value_scale);
  file.tensors["g"] = decays(random, decay, {sizes.tokens, sizes.value_heads});
  file.tensors["beta"] = uniform(random, DType::f32, {sizes.tokens, sizes.value_heads}, 0, 1);
  file.tensors["state"] =
      normal(random, DType::f32, {sizes.value_heads, sizes.value_width, sizes.key_width}, value_scale * 0.3);
  file.attributes["form"] = form;
  return file;
}

// Five sequences, one of them empty, in a pool of seven states.
OpFile make_sequences(std::uint64_t seed, DType type, const std::string& form) {
  Random random(seed);
  const Sizes sizes{200};
  OpFile file = make(seed, type, sizes, form, Decay::usual);
  file.tensors["state"] =
      normal(random, DType::f32, {7, sizes.value_heads, sizes.value_width, sizes.key_width}, 0.3);
  file.tensors["seq_starts"] = indices({0, 1, 66, 66, 130, 200});
  file.tensors["slots"] = indices({6, 0, 3, 2, 5});
  file.attributes["heads"] = "tiled";
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::DeltaRule>() {
  std::vector<Case> table;
  const auto add = [&](std::string label, auto make_file) { table.push_back({std::move(label), make_file}); };
  for (const std::string form : {"recurrent", "chunked", "auto"})
    for (const DType type : {DType::f32, DType::bf16}) {
      const std::string suffix = " " + form + (type == DType::f32 ? " f32" : " bf16");
      for (const std::int64_t tokens : {1, 2, 63, 64, 65, 257})
        add(std::to_string(tokens) + " tokens" + suffix,
            [=](std::uint64_t seed) { return make(seed, type, {tokens}, form, Decay::usual); });
      for (const std::int64_t ratio : {1, 3, 16})
        for (const std::string heads : {"block", "tiled"})
          add(fmt::format("ratio {} {}{}", ratio, heads, suffix), [=](std::uint64_t seed) {
            OpFile file = make(seed, type, {70, 2, 2 * ratio, 32, 32}, form, Decay::usual);
            file.attributes["heads"] = heads;
            return file;
          });
      for (const auto& [key_width, value_width] :
           {std::pair<std::int64_t, std::int64_t>{256, 32}, {32, 256}, {96, 160}, {128, 128}})
        add(std::to_string(key_width) + " by " + std::to_string(value_width) + suffix,
            [=, kw = key_width, vw = value_width](std::uint64_t seed) {
              return make(seed, type, {67, 1, 1, kw, vw}, form, Decay::usual);
            });
      for (const auto& [word, decay] :
           {std::pair{"no decay", Decay::none}, {"resets", Decay::resets}, {"steep decay", Decay::steep}})
        add(word + suffix, [=, kind = decay](std::uint64_t seed) {
          return make(seed, type, {150, 1, 2, 32, 32}, form, kind);
        });
      for (const double scale : {1e15, 1e-15})
        add((scale > 1 ? "huge" : "tiny") + suffix, [=](std::uint64_t seed) {
          return make(seed, type, {70, 1, 2, 32, 32}, form, Decay::usual, scale);
        });
      add("sequences" + suffix, [=](std::uint64_t seed) { return make_sequences(seed, type, form); });
    }
  add("F32 values with BF16 keys", [](std::uint64_t seed) {
    OpFile file = make(seed, DType::bf16, {66}, "auto", Decay::usual);
    HostTensor wide(DType::f32, file.tensors["v"].shape);
    for (std::int64_t i = 0; i < wide.shape.elements(); ++i) set(wide, i, file.tensors["v"].at(i));
    file.tensors["v"] = std::move(wide);
    return file;
  });
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::DeltaRule>() {
  std::vector<BenchCase> table;
  const auto add = [&](std::int64_t tokens, const std::string& form) {
    const double per_token = 2.0 * 128 * (2 * 16 + 2 * 32) + 8 * 32;  // q, k, v, out in BF16; g, beta
    const double states = 2.0 * 32 * 128 * 128 * 4;
    table.push_back({std::to_string(tokens) + " x 16/32 heads of 128 bf16 " + form,
                     [=](std::uint64_t seed) {
                       return make(seed, DType::bf16, {tokens, 16, 32, 128, 128}, form, Decay::usual);
                     },
                     to_double(tokens) * per_token + states, to_double(tokens) * 32 * 7 * 128 * 128});
  };
  add(1, "recurrent");
  for (const std::int64_t tokens : {16, 64, 512, 4096})
    for (const std::string form : {"recurrent", "chunked"}) add(tokens, form);
  BenchCase saving = table.back();
  saving.label += ", ten states saved";
  saving.bytes += 10.0 * 32 * 128 * 128 * 4;
  saving.make = [make = table.back().make](std::uint64_t seed) {
    OpFile file = make(seed);
    HostTensor at(DType::i32, {10});
    for (std::int64_t i = 0; i < 10; ++i) at.data<std::int32_t>()[i] = to_int((i + 1) * 384);
    file.tensors["save_at"] = std::move(at);
    file.tensors["saved"] = constant(DType::f32, {10, 32, 128, 128}, 0);
    return file;
  };
  table.push_back(std::move(saving));
  add(32768, "chunked");
  return table;
}

}  // namespace sluice::runner
