// A token with NaN affects only what may depend on it: earlier tokens of its sequence and all tokens of other
// sequences keep every bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runner/bound_op.h"
#include "runner/random_tensor.h"
#include "sluice/ops/backend.h"

namespace sluice::ops {
namespace {

using runner::HostTensor;
using runner::OpFile;
using runner::Random;

constexpr std::int64_t kFirst = 75;   // tokens of the first sequence
constexpr std::int64_t kTokens = 90;  // of both

OpFile two_sequences() {
  OpFile file;
  file.tensors["seq_starts"] = runner::indices({0, kFirst, kTokens});
  return file;
}

OpFile delta_rule(const std::string& form, DType type) {
  Random random(11);
  OpFile file = two_sequences();
  file.tensors["q"] = normal(random, type, {kTokens, 1, 32}, 0.1);
  file.tensors["k"] = normal(random, type, {kTokens, 1, 32}, 0.1);
  file.tensors["v"] = normal(random, type, {kTokens, 2, 32});
  file.tensors["g"] = uniform(random, DType::f32, {kTokens, 2}, -0.5, 0);
  file.tensors["beta"] = uniform(random, DType::f32, {kTokens, 2}, 0, 1);
  file.tensors["state"] = normal(random, DType::f32, {2, 2, 32, 32}, 0.3);
  file.attributes["form"] = form;
  return file;
}

OpFile convolution() {
  Random random(12);
  OpFile file = two_sequences();
  file.tensors["x"] = normal(random, DType::f32, {kTokens, 40});
  file.tensors["weight"] = normal(random, DType::f32, {40, 4});
  file.tensors["state"] = normal(random, DType::f32, {2, 3, 40});
  return file;
}

// Caches that hold only the tokens of the call, so row t belongs to token t.
OpFile attention(DType cache, std::int64_t width) {
  Random random(13);
  OpFile file = two_sequences();
  file.tensors["q"] = normal(random, DType::f32, {kTokens, 4, width});
  file.tensors["k_cache"] = normal(random, cache, {2, kTokens, 2, width});
  file.tensors["v_cache"] = normal(random, cache, {2, kTokens, 2, width});
  file.tensors["start"] = runner::indices({0, 0});
  file.attributes["scale"] = "0.2";
  return file;
}

// Sets token t of a field whose first dimension counts tokens, or row t of the first cache of a pool.
OpFile spoil(OpFile file, const std::string& field, std::int64_t t, bool pooled) {
  HostTensor& tensor = file.tensors.at(field);
  std::int64_t width = 1;
  for (int d = pooled ? 2 : 1; d < tensor.shape.rank(); ++d) width *= tensor.shape[d];
  for (std::int64_t i = t * width; i < (t + 1) * width; ++i)
    runner::set(tensor, i, std::numeric_limits<double>::quiet_NaN());
  return file;
}

// Spoils each token t of the first sequence: earlier tokens and the second sequence must not change.
void expect_contained(const std::string& op, const OpFile& clean, const std::vector<std::string>& fields,
                      bool pooled = false) {
  const auto backend = make_backend("cpu", {.threads = 2});
  const HostTensor expected = run_op(*backend, op, clean).tensors.at("out");
  const std::size_t row = expected.bytes.size() / static_cast<std::size_t>(kTokens);
  const auto same = [&](const HostTensor& given, std::int64_t begin, std::int64_t end) {
    const std::size_t from = static_cast<std::size_t>(begin) * row;
    return std::memcmp(given.bytes.data() + from, expected.bytes.data() + from,
                       static_cast<std::size_t>(end - begin) * row) == 0;
  };
  for (const std::string& field : fields)
    for (std::int64_t t = 0; t < kFirst; ++t) {
      const OpFile result = run_op(*backend, op, spoil(clean, field, t, pooled));
      const HostTensor& given = result.tensors.at("out");
      EXPECT_TRUE(same(given, 0, t)) << field << " of token " << t << " reached an earlier token";
      EXPECT_TRUE(same(given, kFirst, kTokens)) << field << " of token " << t << " reached another sequence";
      EXPECT_FALSE(same(given, t, t + 1)) << field << " of token " << t << " had no effect";
    }
}

TEST(NanToken, DeltaRule) {
  for (const char* form : {"recurrent", "chunked", "auto"})
    for (const DType type : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(form);
      expect_contained("delta_rule", delta_rule(form, type), {"q", "k", "v", "beta"});
    }
}

TEST(NanToken, CausalConv1d) {
  expect_contained("causal_conv1d", convolution(), {"x"});
}

TEST(NanToken, Attention) {
  for (const DType cache : {DType::f32, DType::bf16})
    for (const std::int64_t width : {48, 64}) {  // matrix units take 64
      expect_contained("attention", attention(cache, width), {"q"});
      expect_contained("attention", attention(cache, width), {"k_cache", "v_cache"}, true);
    }
}

// Within a chunk, row i holds products with the earlier rows: NaN must appear in row t, in column t of later
// rows, and exactly where the reference has it.
TEST(NanToken, DeltaKkt) {
  const auto cpu = make_backend("cpu", {.threads = 2});
  const auto reference = make_backend("reference", {});
  Random random(14);
  OpFile clean;
  clean.tensors["k"] = normal(random, DType::f32, {1, 40, 1, 33});
  clean.tensors["beta"] = uniform(random, DType::f32, {1, 40, 2}, 0, 1);
  clean.tensors["g"] = uniform(random, DType::f32, {1, 40, 2}, -2, 0);
  clean.attributes["chunk"] = "16";
  const HostTensor untouched = run_op(*cpu, "delta_kkt", clean).tensors.at("A");
  for (const char* field : {"k", "beta", "g"})
    for (std::int64_t t = 0; t < 40; ++t) {
      const OpFile spoilt = spoil(clean, field, t, true);
      const HostTensor given = run_op(*cpu, "delta_kkt", spoilt).tensors.at("A");
      const HostTensor expected = run_op(*reference, "delta_kkt", spoilt).tensors.at("A");
      for (std::int64_t i = 0; i < given.shape.elements(); ++i) {
        const bool nan = std::isnan(given.at(i));
        ASSERT_EQ(nan, std::isnan(expected.at(i))) << field << " " << t << " " << i;
        ASSERT_TRUE(nan || given.at(i) == untouched.at(i)) << field << " " << t << " " << i;
      }
    }
}

}  // namespace
}  // namespace sluice::ops
