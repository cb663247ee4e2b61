// The bits of the delta ops on the host do not depend on the division of tokens into calls, the number of
// threads or other sequences in the call.
#include <gtest/gtest.h>

#include <cstring>

#include "runner/random_tensor.h"
#include "sluice/ops/backend.h"

namespace sluice::ops {
namespace {

using runner::HostTensor;
using runner::Random;

ConstView view(const HostTensor& tensor) {
  return {tensor.bytes.data(), tensor.dtype, tensor.shape};
}
View view(HostTensor& tensor) {
  return {tensor.bytes.data(), tensor.dtype, tensor.shape};
}

// The outputs and the last state of a run.
struct Result {
  HostTensor out;
  HostTensor state;
  bool operator==(const Result& other) const {
    return out.bytes == other.out.bytes && state.bytes == other.state.bytes;
  }
};

// A sequence of the delta rule that can be computed in parts.
struct Rule {
  HostTensor q, k, v, g, beta, state;

  Rule(std::uint64_t seed, DType type, std::int64_t tokens) {
    Random random(seed);
    q = normal(random, type, {tokens, 2, 64}, 0.02);
    k = normal(random, type, {tokens, 2, 64}, 0.12);
    v = normal(random, type, {tokens, 6, 96});
    g = uniform(random, DType::f32, {tokens, 6}, -0.5, 0);
    beta = uniform(random, DType::f32, {tokens, 6}, 0, 1);
    state = normal(random, DType::f32, {6, 96, 64}, 0.3);
  }

  Result run(Backend& backend, DeltaForm form, const std::vector<std::int64_t>& cuts) const {
    Result result{HostTensor(v.dtype, v.shape), state};
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const std::int64_t begin = cuts[i];
      const std::int64_t count = cuts[i + 1] - begin;
      DeltaRule op;
      op.q = view(q).rows(begin, count);
      op.k = view(k).rows(begin, count);
      op.v = view(v).rows(begin, count);
      op.g = view(g).rows(begin, count);
      op.beta = view(beta).rows(begin, count);
      op.state = view(result.state);
      op.out = view(result.out).rows(begin, count);
      op.form = form;
      backend.run(op);
    }
    return result;
  }
};

std::vector<std::int64_t> one_by_one(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> cuts;
  for (std::int64_t t = begin; t <= end; ++t) cuts.push_back(t);
  return cuts;
}

class DeltaInvariance : public ::testing::TestWithParam<DType> {};

TEST_P(DeltaInvariance, RecurrentTokensOneByOne) {
  const auto backend = make_backend("cpu", {.threads = 2});
  const Rule rule(1, GetParam(), 70);
  EXPECT_TRUE(rule.run(*backend, DeltaForm::recurrent, {0, 70}) ==
              rule.run(*backend, DeltaForm::recurrent, one_by_one(0, 70)));
}

TEST_P(DeltaInvariance, ChunkedCutAtMultiplesOf64) {
  const Rule rule(2, GetParam(), 200);
  for (const char* name : {"cpu", "reference"}) {
    SCOPED_TRACE(name);
    const auto backend = make_backend(name, {.threads = 2});
    const Result whole = rule.run(*backend, DeltaForm::chunked, {0, 200});
    EXPECT_TRUE(whole == rule.run(*backend, DeltaForm::chunked, {0, 64, 128, 192, 200}));
    EXPECT_TRUE(whole == rule.run(*backend, DeltaForm::chunked, {0, 128, 200}));
  }
}

TEST_P(DeltaInvariance, AutoCutAtMultiplesOf64AndAnywhereAfter) {
  const auto backend = make_backend("cpu", {.threads = 2});
  const Rule rule(3, GetParam(), 150);
  const Result whole = rule.run(*backend, DeltaForm::automatic, {0, 150});
  EXPECT_TRUE(whole == rule.run(*backend, DeltaForm::automatic, {0, 64, 128, 150}));
  std::vector<std::int64_t> cuts = one_by_one(128, 150);
  cuts.insert(cuts.begin(), 0);
  EXPECT_TRUE(whole == rule.run(*backend, DeltaForm::automatic, cuts));
  EXPECT_TRUE(whole == rule.run(*backend, DeltaForm::automatic, {0, 64, 128, 139, 150}));
}

TEST_P(DeltaInvariance, ThreadsDoNotMatter) {
  const auto one = make_backend("cpu", {.threads = 1});
  const auto five = make_backend("cpu", {.threads = 5});
  const Rule rule(4, GetParam(), 150);
  for (const DeltaForm form : {DeltaForm::recurrent, DeltaForm::chunked, DeltaForm::automatic})
    EXPECT_TRUE(rule.run(*one, form, {0, 150}) == rule.run(*five, form, {0, 150}));
}

// The same tokens as three sequences of one call and as three calls.
TEST_P(DeltaInvariance, OtherSequencesDoNotMatter) {
  const auto backend = make_backend("cpu", {.threads = 2});
  const Rule rule(5, GetParam(), 170);
  for (const DeltaForm form : {DeltaForm::recurrent, DeltaForm::chunked, DeltaForm::automatic}) {
    HostTensor pool(DType::f32, {3, 6, 96, 64});
    for (std::size_t b = 0; b < 3; ++b)
      std::memcpy(pool.bytes.data() + b * rule.state.bytes.size(), rule.state.bytes.data(),
                  rule.state.bytes.size());
    HostTensor out(rule.v.dtype, rule.v.shape);
    const HostTensor starts = runner::indices({0, 65, 66, 170});
    const HostTensor slots = runner::indices({2, 0, 1});
    DeltaRule op;
    op.q = view(rule.q);
    op.k = view(rule.k);
    op.v = view(rule.v);
    op.g = view(rule.g);
    op.beta = view(rule.beta);
    op.state = view(pool);
    op.out = view(out);
    op.seq_starts = view(starts);
    op.slots = view(slots);
    op.form = form;
    backend->run(op);
    const std::size_t row = out.bytes.size() / 170;
    const auto expect_alone = [&](std::int64_t begin, std::int64_t end, std::size_t slot) {
      const Result alone = rule.run(*backend, form, {begin, end});
      const std::size_t from = static_cast<std::size_t>(begin) * row;
      EXPECT_EQ(std::memcmp(alone.out.bytes.data() + from, out.bytes.data() + from,
                            static_cast<std::size_t>(end - begin) * row),
                0);
      EXPECT_EQ(std::memcmp(alone.state.bytes.data(), pool.bytes.data() + slot * alone.state.bytes.size(),
                            alone.state.bytes.size()),
                0);
    };
    expect_alone(0, 65, 2);
    expect_alone(65, 66, 0);
    expect_alone(66, 170, 1);
  }
}

TEST_P(DeltaInvariance, ConvolutionTokensOneByOne) {
  Random random(6);
  const HostTensor x = normal(random, GetParam(), {21, 301});
  const HostTensor weight = normal(random, DType::bf16, {301, 4}, 0.5);
  const HostTensor start = normal(random, DType::f32, {3, 301});
  const auto run = [&](int threads, const std::vector<std::int64_t>& cuts) {
    const auto backend = make_backend("cpu", {.threads = threads});
    Result result{HostTensor(x.dtype, x.shape), start};
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      CausalConv1d op;
      op.x = view(x).rows(cuts[i], cuts[i + 1] - cuts[i]);
      op.weight = view(weight);
      op.state = view(result.state);
      op.out = view(result.out).rows(cuts[i], cuts[i + 1] - cuts[i]);
      backend->run(op);
    }
    return result;
  };
  const Result whole = run(1, {0, 21});
  EXPECT_TRUE(whole == run(3, {0, 21}));
  EXPECT_TRUE(whole == run(2, one_by_one(0, 21)));
  EXPECT_TRUE(whole == run(2, {0, 2, 9, 21}));
}

INSTANTIATE_TEST_SUITE_P(Types, DeltaInvariance, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace sluice::ops
