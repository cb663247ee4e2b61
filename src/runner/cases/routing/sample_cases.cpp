#include "sluice/ops/routing/sample.h"

#include <cmath>

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Settings {
  const char* label;
  const char* temperature;
  const char* top_k;
  const char* top_p;
  const char* min_p;
};

OpFile with(HostTensor logits, const Settings& settings, Random& random) {
  OpFile file;
  HostTensor positions(DType::i32, {logits.shape[0]});
  for (std::int64_t i = 0; i < logits.shape[0]; ++i) set(positions, i, random.integer(300000));
  file.tensors["logits"] = std::move(logits);
  file.tensors["positions"] = std::move(positions);
  file.attributes = {{"temperature", settings.temperature},
                     {"top_k", settings.top_k},
                     {"top_p", settings.top_p},
                     {"min_p", settings.min_p},
                     {"seed", std::to_string(random.integer(1 << 30))}};
  return file;
}

OpFile make(std::uint64_t seed, const ops::Shape& shape, const Settings& settings, double scale) {
  Random random(seed);
  HostTensor logits = normal(random, DType::f32, shape, scale);
  return with(std::move(logits), settings, random);
}

// Few distinct values: equal logits have equal weights, and only the index decides between them.
OpFile make_ties(std::uint64_t seed, const Settings& settings) {
  Random random(seed);
  HostTensor logits(DType::f32, {33, 1000});
  for (std::int64_t i = 0; i < logits.shape.elements(); ++i) set(logits, i, random.integer(3));
  return with(std::move(logits), settings, random);
}

// Tokens with logits of -inf, a row with a single finite one, and one with +inf.
OpFile make_infinite(std::uint64_t seed, const Settings& settings) {
  Random random(seed);
  HostTensor logits = normal(random, DType::f32, {3, 777});
  for (std::int64_t i = 0; i < 777; ++i) {
    if (i % 3 != 0) set(logits, i, -INFINITY);
    if (i != 500) set(logits, 777 + i, -INFINITY);
    if (i == 123) set(logits, 2 * 777 + i, INFINITY);
  }
  return with(std::move(logits), settings, random);
}

HostTensor random_words(Random& random, const ops::Shape& shape) {
  HostTensor words(DType::i32, shape);
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    set(words, i, random.integer(std::int64_t{1} << 32) - (std::int64_t{1} << 31));
  return words;
}

// Up to a few distinct tokens per row.
void add_biases(OpFile& file, Random& random, std::int64_t pool, std::int64_t vocab) {
  constexpr std::int64_t kRoom = 7;
  HostTensor ids = constant(DType::i32, {pool, kRoom}, -1);
  for (std::int64_t p = 0; p < pool; ++p) {
    std::int64_t id = random.integer(vocab);
    for (std::int64_t i = random.integer(kRoom + 1); i > 0 && id < vocab;
         --i, id += 1 + random.integer(vocab))
      set(ids, p * kRoom + i - 1, id);
  }
  file.tensors["bias_ids"] = std::move(ids);
  file.tensors["bias"] = normal(random, DType::f32, {pool, kRoom}, 5);
}

// All kinds of requests in one call: greedy and sampled rows, limits, penalties, biases, masks and
// log-probabilities, in slots of a larger pool, with some rows left out.
OpFile make_mixture(std::uint64_t seed, std::int64_t rows, std::int64_t vocab, std::int64_t pool) {
  Random random(seed);
  OpFile file;
  const auto field = [&](const char* name, const auto& value) {
    HostTensor tensor(DType::f32, {pool});
    for (std::int64_t p = 0; p < pool; ++p) set(tensor, p, value());
    file.tensors[name] = std::move(tensor);
  };
  const auto integer = [&](const char* name, const auto& value) {
    HostTensor tensor(DType::i32, {pool});
    for (std::int64_t p = 0; p < pool; ++p) set(tensor, p, value());
    file.tensors[name] = std::move(tensor);
  };
  const auto sometimes = [&](double otherwise, double low, double high) {
    return random.integer(2) == 0 ? otherwise : random.uniform(low, high);
  };
  file.tensors["logits"] = normal(random, DType::f32, {rows, vocab}, 3);
  file.tensors["positions"] = integers(random, {rows}, 300000);
  std::vector<std::int64_t> slots(to_size(pool));
  for (std::int64_t p = 0; p < pool; ++p) slots[p] = p;
  HostTensor chosen(DType::i32, {rows});
  for (std::int64_t t = 0; t < rows; ++t) {
    std::swap(slots[t], slots[to_size(t + random.integer(pool - t))]);
    set(chosen, t, slots[t]);
  }
  file.tensors["slots"] = std::move(chosen);
  field("temperature", [&] { return sometimes(0, 0.2, 2); });
  field("top_p", [&] { return sometimes(1, 0.1, 0.99); });
  field("min_p", [&] { return sometimes(0, 0, 0.3); });
  field("repetition_penalty", [&] { return sometimes(1, 0.5, 2); });
  field("presence_penalty", [&] { return sometimes(0, -2, 2); });
  field("frequency_penalty", [&] { return sometimes(0, -1, 1); });
  integer("top_k", [&] { return random.integer(2) == 0 ? 0 : random.integer(2 * vocab); });
  integer("logprobs", [&] { return random.integer(22) - 1; });
  file.tensors["seed"] = random_words(random, {pool, 2});
  HostTensor counts(DType::i32, {pool, vocab});
  for (std::int64_t i = 0; i < pool * vocab / 5 + 1; ++i)
    set(counts, random.integer(pool * vocab), 1 + random.integer(4));
  file.tensors["counts"] = std::move(counts);
  add_biases(file, random, pool, vocab);
  HostTensor allowed = random_bytes(random, DType::u8, {pool, (vocab + 7) / 8});
  for (std::int64_t p = 0; p < pool; ++p) {
    const std::int64_t bytes = (vocab + 7) / 8;
    set(allowed, p * bytes, 255);  // at least one is allowed
    if (random.integer(2) == 0)
      for (std::int64_t i = 0; i < bytes; ++i) set(allowed, p * bytes + i, 255);
  }
  file.tensors["allowed"] = std::move(allowed);
  return file;
}

// Rows without a slot are left unchanged.
OpFile make_left_out(std::uint64_t seed) {
  OpFile file = make_mixture(seed, 6, 5000, 9);
  for (const std::int64_t row : {1, 4}) set(file.tensors["slots"], row, -1);
  return file;
}

constexpr Settings kSettings[] = {
    {"greedy", "0", "0", "1", "0"},          {"warm", "1", "0", "1", "0"},
    {"top_k 20", "0.7", "20", "1", "0"},     {"top_p 0.9", "1", "0", "0.9", "0"},
    {"min_p 0.05", "1.3", "0", "1", "0.05"}, {"all limits", "0.8", "40", "0.95", "0.02"},
    {"cold", "0.01", "0", "0.99", "0"},      {"hot", "50", "100", "0.5", "0"},
};

}  // namespace

template <>
std::vector<Case> cases<ops::Sample>() {
  std::vector<Case> table;
  for (const Settings& settings : kSettings) {
    for (const ops::Shape& shape :
         {ops::Shape{1, 1}, ops::Shape{3, 7}, ops::Shape{17, 4096}, ops::Shape{2, 50021}})
      table.push_back({std::string(settings.label) + " " + to_string(shape),
                       [=](std::uint64_t seed) { return make(seed, shape, settings, 3); }});
    table.push_back({std::string(settings.label) + " ties",
                     [=](std::uint64_t seed) { return make_ties(seed, settings); }});
    table.push_back({std::string(settings.label) + " infinite logits",
                     [=](std::uint64_t seed) { return make_infinite(seed, settings); }});
  }
  constexpr std::int64_t kSizes[][3] = {{1, 1, 1},      {3, 7, 3},    {5, 50, 8},
                                        {17, 4096, 20}, {9, 4099, 9}, {4, 50021, 6}};
  for (const auto& [rows, vocab, pool] : kSizes)
    table.push_back({"mixture " + to_string(ops::Shape{rows, vocab, pool}),
                     [rows = rows, vocab = vocab, pool = pool](std::uint64_t seed) {
                       return make_mixture(seed, rows, vocab, pool);
                     }});
  table.push_back({"rows left out", make_left_out});
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::Sample>() {
  std::vector<BenchCase> table;
  for (const Settings& settings : {kSettings[0], kSettings[5]})
    for (const std::int64_t rows : {1, 32})
      table.push_back({std::string(settings.label) + " " + std::to_string(rows) + "x248320",
                       [=](std::uint64_t seed) {
                         return make(seed, {rows, 248320}, settings, 3);
                       },
                       to_double(rows) * 248320 * 4, 0});
  table.push_back({"mixture 32x248320", [](std::uint64_t seed) { return make_mixture(seed, 32, 248320, 32); },
                   32.0 * 248320 * 4, 0});
  return table;
}

}  // namespace sluice::runner
