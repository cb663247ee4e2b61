// Attention over the packed cache: invariance to the division of a call, and contents of invisible rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runner/bound_op.h"
#include "runner/compare.h"
#include "runner/random_tensor.h"

namespace sluice::runner {
namespace {

using ops::DType;
constexpr std::uint64_t kSeed = 20250101;
constexpr std::int64_t kWidth = 64;
constexpr std::int64_t kHeads = 6;
constexpr std::int64_t kKvHeads = 2;

HostTensor rows_of(const HostTensor& x, std::int64_t begin, std::int64_t end) {
  ops::Shape shape = x.shape;
  shape[0] = end - begin;
  HostTensor part(x.dtype, shape);
  const std::size_t row = x.bytes.size() / static_cast<std::size_t>(x.shape[0]);
  std::memcpy(part.bytes.data(), x.bytes.data() + static_cast<std::size_t>(begin) * row, part.bytes.size());
  return part;
}

OpFile make_call(Random& random, std::int64_t tokens, std::int64_t slots, std::int64_t length, int k_bits,
                 int v_bits, DType type, std::int64_t width = kWidth) {
  OpFile file;
  file.tensors["q"] = normal(random, type, {tokens, kHeads, width});
  file.tensors["signs"] = random_bytes(random, DType::u8, {width / 8});
  file.tensors["k_codes"] = random_bytes(random, DType::u8, {kKvHeads, slots, width * k_bits / 8});
  file.tensors["v_codes"] = random_bytes(random, DType::u8, {kKvHeads, slots, width * v_bits / 8});
  file.tensors["k_norms"] = uniform(random, DType::f32, {kKvHeads, slots}, 4, 12);
  file.tensors["v_norms"] = uniform(random, DType::f32, {kKvHeads, slots}, 4, 12);
  file.attributes = {{"k_bits", std::to_string(k_bits)},
                     {"v_bits", std::to_string(v_bits)},
                     {"length", std::to_string(length)},
                     {"scale", "0.125"}};
  return file;
}

struct Cut {
  int k_bits;
  int v_bits;
  const char* window;
  DType type;
  std::int64_t width = kWidth;
};

class TurboquantAttentionCut : public ::testing::TestWithParam<Cut> {};

// Tokens one by one, in runs of any size, all at once, on one thread or three: the same bits. Later rows are
// in the cache all the time, and one of them has NaN norms that only the last tokens see.
TEST_P(TurboquantAttentionCut, DoesNotChangeABit) {
  const Cut& cut = GetParam();
  constexpr std::int64_t kTokens = 70;
  constexpr std::int64_t kLength = 1100;
  Random random(kSeed);
  OpFile whole = make_call(random, kTokens, 1200, kLength, cut.k_bits, cut.v_bits, cut.type, cut.width);
  whole.attributes["window"] = cut.window;
  for (std::int64_t h = 0; h < kKvHeads; ++h)
    for (const char* norms : {"k_norms", "v_norms"})
      set(whole.tensors[norms], h * 1200 + kLength - 3, std::numeric_limits<double>::quiet_NaN());
  const HostTensor expected =
      run_op(*ops::make_backend("cpu", {.threads = 1}), "turboquant_attention", whole).tensors.at("out");
  EXPECT_FALSE(std::isnan(expected.at(0)));
  EXPECT_TRUE(std::isnan(expected.at((kTokens - 3) * kHeads * cut.width)));
  const auto three = ops::make_backend("cpu", {.threads = 3});
  for (const std::int64_t run : {1, 7, 33, 70})
    for (std::int64_t begin = 0; begin < kTokens; begin += run) {
      const std::int64_t end = std::min(begin + run, kTokens);
      OpFile part = whole;
      part.tensors["q"] = rows_of(whole.tensors["q"], begin, end);
      part.attributes["length"] = std::to_string(kLength - kTokens + end);
      const HostTensor out = run_op(*three, "turboquant_attention", part).tensors.at("out");
      ASSERT_EQ(out.bytes, rows_of(expected, begin, end).bytes)
          << "tokens " << begin << " to " << end << ", seed " << kSeed;
    }
}

INSTANTIATE_TEST_SUITE_P(All, TurboquantAttentionCut,
                         ::testing::Values(Cut{4, 4, "0", DType::f32}, Cut{8, 3, "0", DType::bf16},
                                           Cut{5, 2, "300", DType::f32}, Cut{6, 8, "1", DType::f32},
                                           Cut{4, 4, "0", DType::bf16, 128},
                                           Cut{4, 4, "300", DType::bf16, 256}));

// A sequence gives the same bits alone and among others.
TEST(TurboquantAttention, OtherSequencesDoNotChangeABit) {
  Random random(kSeed);
  constexpr std::int64_t kSlots = 600;
  const OpFile alone = make_call(random, 3, kSlots, 590, 4, 4, DType::f32);
  OpFile pooled = alone;
  for (const char* name : {"k_codes", "v_codes", "k_norms", "v_norms"}) {
    const HostTensor& one = alone.tensors.at(name);
    ops::Shape shape{3};
    for (const std::int64_t dim : one.shape.dims()) shape.push_back(dim);
    HostTensor pool = one.dtype == DType::u8 ? random_bytes(random, DType::u8, shape)
                                             : uniform(random, DType::f32, shape, 4, 12);
    std::memcpy(pool.bytes.data() + 2 * one.bytes.size(), one.bytes.data(), one.bytes.size());
    pooled.tensors[name] = pool;
  }
  HostTensor q = normal(random, DType::f32, {8, kHeads, kWidth});
  const HostTensor& own = alone.tensors.at("q");
  std::memcpy(q.bytes.data() + own.bytes.size() / 3 * 4, own.bytes.data(), own.bytes.size());
  pooled.tensors["q"] = q;
  pooled.tensors["seq_starts"] = indices({0, 4, 7, 8});
  pooled.tensors["slots"] = indices({0, 2, 1});
  pooled.tensors["length"] = indices({100, 590, 600});
  pooled.attributes.erase("length");
  const auto backend = ops::make_backend("cpu", {.threads = 3});
  const HostTensor expected = run_op(*backend, "turboquant_attention", alone).tensors.at("out");
  const HostTensor out = run_op(*backend, "turboquant_attention", pooled).tensors.at("out");
  EXPECT_EQ(rows_of(out, 4, 7).bytes, expected.bytes);
}

// Appending in any division gives the same cache, and attention over a wrapped ring equals attention over the
// same rows in order.
TEST(TurboquantAttention, ReadsARingInOrder) {
  Random random(kSeed);
  constexpr std::int64_t kSlots = 50;
  constexpr std::int64_t kStart = 137;
  OpFile ring = make_call(random, 1, kSlots, kSlots, 4, 3, DType::f32);
  ring.attributes["ring_start"] = std::to_string(kStart % kSlots);
  OpFile straight = ring;
  straight.attributes["ring_start"] = "0";
  for (const char* name : {"k_codes", "v_codes", "k_norms", "v_norms"}) {
    const HostTensor& from = ring.tensors[name];
    HostTensor& to = straight.tensors[name];
    const std::size_t row = from.bytes.size() / (kKvHeads * kSlots);
    for (std::size_t h = 0; h < kKvHeads; ++h)
      for (std::size_t j = 0; j < kSlots; ++j)
        std::memcpy(to.bytes.data() + (h * kSlots + j) * row,
                    from.bytes.data() + (h * kSlots + (j + kStart) % kSlots) * row, row);
  }
  const auto backend = ops::make_backend("cpu", {.threads = 2});
  EXPECT_EQ(run_op(*backend, "turboquant_attention", ring).tensors.at("out").bytes,
            run_op(*backend, "turboquant_attention", straight).tensors.at("out").bytes);
}

// Appends one token after another to a ring of 16 slots. From the first wrap on, the oldest row follows the
// newest: a ring_start that is one too low takes the newest for the oldest.
TEST(TurboquantAttention, FirstWrapForgetsTheOldestRow) {
  constexpr std::int64_t kSlots = 16;
  constexpr std::int64_t kTokens = 2 * kSlots + 3;
  Random random(kSeed);
  OpFile all;  // every token, in a large enough cache
  all.tensors["k"] = normal(random, DType::f32, {kTokens, kKvHeads, kWidth});
  all.tensors["v"] = normal(random, DType::f32, {kTokens, kKvHeads, kWidth});
  all.attributes = {{"k_bits", "4"}, {"v_bits", "5"}, {"start", "0"}};
  const auto add_cache = [&](OpFile& file, std::int64_t slots) {
    file.tensors["k_codes"] = random_bytes(random, DType::u8, {kKvHeads, slots, kWidth * 4 / 8});
    file.tensors["v_codes"] = random_bytes(random, DType::u8, {kKvHeads, slots, kWidth * 5 / 8});
    for (const char* norms : {"k_norms", "v_norms"})
      file.tensors[norms] = constant(DType::f32, {kKvHeads, slots}, std::numeric_limits<double>::quiet_NaN());
  };
  OpFile ring = all;
  add_cache(all, kTokens);
  add_cache(ring, kSlots);
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = ops::make_backend(name, {.threads = 2});
    const OpFile straight = run_op(*backend, "turboquant_append", all);
    OpFile step = ring;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      step.tensors["k"] = rows_of(all.tensors["k"], t, t + 1);
      step.tensors["v"] = rows_of(all.tensors["v"], t, t + 1);
      step.attributes["start"] = std::to_string(t);
      for (auto& [field, tensor] : run_op(*backend, "turboquant_append", step).tensors)
        step.tensors[field] = tensor;
      const HostTensor q = normal(random, DType::f32, {1, kHeads, kWidth});
      const auto attend = [&](const OpFile& cache, std::int64_t length, std::int64_t ring_start,
                              std::int64_t window) {
        OpFile call;
        call.tensors["q"] = q;
        for (const char* field : {"k_codes", "v_codes", "k_norms", "v_norms"})
          call.tensors[field] = cache.tensors.at(field);
        call.attributes = {{"k_bits", "4"},
                           {"v_bits", "5"},
                           {"length", std::to_string(length)},
                           {"ring_start", std::to_string(ring_start)},
                           {"window", std::to_string(window)},
                           {"scale", "0.3"}};
        return run_op(*backend, "turboquant_attention", call).tensors.at("out");
      };
      const std::int64_t length = std::min(t + 1, kSlots);
      const std::int64_t oldest = t + 1 > kSlots ? (t + 1) % kSlots : 0;
      for (const std::int64_t window : {kSlots, kSlots - 1, std::int64_t{3}}) {
        const HostTensor want = attend(straight, t + 1, 0, window);
        EXPECT_LT(relative_l2(attend(step, length, oldest, window), want), 1e-5)
            << name << ", token " << t << ", window " << window;
        if (length == kSlots && window < kSlots) {
          const std::int64_t wrong = (oldest + kSlots - 1) % kSlots;
          EXPECT_GT(relative_l2(attend(step, length, wrong, window), want), 1e-2);
        }
      }
    }
  }
}

// The layout of the flash-attention kernel that reads nibbles: low nibble for the even coordinate, F32 norms
// of the complete vector, no signs, queries rotated by the caller. Decoded here by its own formula.
TEST(TurboquantAttention, ReadsPlainNibbleCachesOfOtherWriters) {
  constexpr float kLevels[] = {-2.7325896F, -2.0690172F, -1.6180464F, -1.2562312F, -0.9423405F, -0.6567591F,
                               -0.3880483F, -0.1283950F, 0.1283950F,  0.3880483F,  0.6567591F,  0.9423405F,
                               1.2562312F,  1.6180464F,  2.0690172F,  2.7325896F};
  for (const std::int64_t width : {256, 512}) {
    constexpr std::int64_t kRows = 40;
    Random random(kSeed);
    OpFile call;
    call.tensors["q"] = normal(random, DType::f32, {1, 2, width});
    for (const std::string side : {"k", "v"}) {
      call.tensors[side + "_codes"] = random_bytes(random, DType::u8, {1, kRows, width / 2});
      call.tensors[side + "_norms"] = uniform(random, DType::f32, {1, kRows}, 5, 20);
    }
    call.attributes = {{"k_bits", "4"},
                       {"v_bits", "4"},
                       {"length", std::to_string(kRows)},
                       {"scale", "0.1"},
                       {"rotated", "1"}};
    const auto value = [&](const std::string& side, std::int64_t row, std::int64_t i) {
      const auto byte = static_cast<unsigned>(call.tensors[side + "_codes"].at(row * width / 2 + i / 2));
      const double norm = call.tensors[side + "_norms"].at(row) / std::sqrt(static_cast<double>(width));
      return static_cast<double>(kLevels[i % 2 == 0 ? byte & 15 : byte >> 4]) * norm;
    };
    HostTensor want(DType::f32, {1, 2, width});
    for (std::int64_t h = 0; h < 2; ++h) {
      std::vector<double> sum(static_cast<std::size_t>(width));
      double total = 0;
      for (std::int64_t row = 0; row < kRows; ++row) {
        double score = 0;
        for (std::int64_t i = 0; i < width; ++i)
          score += call.tensors["q"].at(h * width + i) * value("k", row, i);
        const double weight = std::exp(0.1 * score);
        total += weight;
        for (std::int64_t i = 0; i < width; ++i)
          sum[static_cast<std::size_t>(i)] += weight * value("v", row, i);
      }
      for (std::int64_t i = 0; i < width; ++i)
        set(want, h * width + i, sum[static_cast<std::size_t>(i)] / total);
    }
    for (const char* name : {"reference", "cpu"}) {
      const OpFile out = run_op(*ops::make_backend(name), "turboquant_attention", call);
      EXPECT_LT(relative_l2(out.tensors.at("out"), want), 1e-5) << name << " " << width;
    }
  }
}

TEST(TurboquantAppend, AnyCutLeavesTheSameCache) {
  constexpr std::int64_t kTokens = 41;
  constexpr std::int64_t kSlots = 16;
  Random random(kSeed);
  OpFile whole;
  whole.tensors["k"] = normal(random, DType::f32, {kTokens, kKvHeads, kWidth});
  whole.tensors["v"] = normal(random, DType::bf16, {kTokens, kKvHeads, kWidth});
  whole.tensors["k_codes"] = random_bytes(random, DType::u8, {kKvHeads, kSlots, kWidth * 5 / 8});
  whole.tensors["v_codes"] = random_bytes(random, DType::u8, {kKvHeads, kSlots, kWidth * 4 / 8});
  whole.tensors["k_norms"] = constant(DType::f32, {kKvHeads, kSlots}, 1);
  whole.tensors["v_norms"] = constant(DType::f32, {kKvHeads, kSlots}, 1);
  whole.attributes = {{"k_bits", "5"}, {"v_bits", "4"}, {"start", "9"}, {"norm", "matched"}};
  const auto backend = ops::make_backend("cpu", {.threads = 3});
  const OpFile expected = run_op(*backend, "turboquant_append", whole);
  for (const std::int64_t run : {1, 3, 16, 17}) {
    OpFile step = whole;
    for (std::int64_t begin = 0; begin < kTokens; begin += run) {
      const std::int64_t end = std::min(begin + run, kTokens);
      step.tensors["k"] = rows_of(whole.tensors["k"], begin, end);
      step.tensors["v"] = rows_of(whole.tensors["v"], begin, end);
      step.attributes["start"] = std::to_string(9 + begin);
      for (auto& [name, tensor] : run_op(*backend, "turboquant_append", step).tensors)
        step.tensors[name] = tensor;
    }
    for (const auto& [name, tensor] : expected.tensors)
      EXPECT_EQ(step.tensors[name].bytes, tensor.bytes) << name << ", runs of " << run;
  }
}

// Attention over encoded keys and values approximates attention over the vectors themselves.
TEST(TurboquantAttention, ApproximatesExactAttention) {
  constexpr std::int64_t kRows = 200;
  Random random(kSeed);
  OpFile append;
  append.tensors["k"] = normal(random, DType::f32, {kRows, kKvHeads, kWidth});
  append.tensors["v"] = normal(random, DType::f32, {kRows, kKvHeads, kWidth});
  append.tensors["signs"] = random_bytes(random, DType::u8, {kWidth / 8});
  append.tensors["k_codes"] = random_bytes(random, DType::u8, {kKvHeads, kRows, kWidth});
  append.tensors["v_codes"] = random_bytes(random, DType::u8, {kKvHeads, kRows, kWidth});
  append.tensors["k_norms"] = constant(DType::f32, {kKvHeads, kRows}, 1);
  append.tensors["v_norms"] = constant(DType::f32, {kKvHeads, kRows}, 1);
  append.attributes = {{"k_bits", "8"}, {"v_bits", "8"}, {"start", "0"}, {"norm", "matched"}};
  const auto backend = ops::make_backend("cpu", {.threads = 2});
  OpFile call = run_op(*backend, "turboquant_append", append);
  call.tensors["q"] = normal(random, DType::f32, {1, kHeads, kWidth});
  call.tensors["signs"] = append.tensors["signs"];
  call.attributes = {{"k_bits", "8"}, {"v_bits", "8"}, {"length", std::to_string(kRows)}, {"scale", "0.125"}};
  const HostTensor out = run_op(*backend, "turboquant_attention", call).tensors.at("out");
  HostTensor exact(DType::f32, out.shape);
  const HostTensor& k = append.tensors["k"];
  const HostTensor& v = append.tensors["v"];
  for (std::int64_t h = 0; h < kHeads; ++h) {
    const std::int64_t kv = h / (kHeads / kKvHeads);
    std::vector<double> sum(kWidth);
    double total = 0;
    for (std::int64_t row = 0; row < kRows; ++row) {
      double score = 0;
      for (std::int64_t i = 0; i < kWidth; ++i)
        score += call.tensors["q"].at(h * kWidth + i) * k.at((row * kKvHeads + kv) * kWidth + i);
      const double weight = std::exp(score * 0.125);
      total += weight;
      for (std::int64_t i = 0; i < kWidth; ++i)
        sum[static_cast<std::size_t>(i)] += weight * v.at((row * kKvHeads + kv) * kWidth + i);
    }
    for (std::int64_t i = 0; i < kWidth; ++i)
      set(exact, h * kWidth + i, sum[static_cast<std::size_t>(i)] / total);
  }
  const double error = relative_l2(out, exact);
  EXPECT_LT(error, 0.02);
  EXPECT_GT(error, 0.001);  // because the cache is quantised
}

}  // namespace
}  // namespace sluice::runner
