// Promises of the linear ops beyond their case tables: bits do not depend on the batch, the threads or the
// addresses of weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "runner/bound_op.h"
#include "runner/cases/expert_choice.h"
#include "runner/cases/weight_formats.h"
#include "sluice/ops/backend.h"

namespace sluice::runner {
namespace {

using ops::DType;

constexpr std::uint64_t kSeed = 20240607;

// Rows [begin, end) of the first dimension of every tensor that has one row per token.
OpFile tokens_of(const OpFile& file, const std::vector<std::string>& per_token, std::int64_t begin,
                 std::int64_t end) {
  OpFile part = file;
  for (const std::string& name : per_token) {
    const HostTensor& whole = file.tensors.at(name);
    const std::size_t row_bytes = whole.bytes.size() / static_cast<std::size_t>(whole.shape[0]);
    ops::Shape shape = whole.shape;
    shape[0] = end - begin;
    HostTensor rows(whole.dtype, shape);
    std::memcpy(rows.bytes.data(), whole.bytes.data() + static_cast<std::size_t>(begin) * row_bytes,
                rows.bytes.size());
    part.tensors[name] = rows;
  }
  return part;
}

// One call with all tokens, calls with one token each, calls with some tokens, and another number of threads.
void expect_invariant(const std::string& op, const OpFile& file, const std::vector<std::string>& per_token,
                      const std::string& output, bool exact) {
  SCOPED_TRACE(exact ? "exact" : "rounded");
  const auto two = ops::make_backend("cpu", {.threads = 2, .exact = exact});
  const auto five = ops::make_backend("cpu", {.threads = 5, .exact = exact});
  const HostTensor whole = run_op(*two, op, file).tensors.at(output);
  EXPECT_EQ(run_op(*five, op, file).tensors.at(output).bytes, whole.bytes);
  const std::int64_t tokens = whole.shape[0];
  for (const std::int64_t step : {1, 2, 3, 5, 29}) {
    std::vector<std::byte> joined;
    for (std::int64_t t = 0; t < tokens; t += step) {
      const OpFile part = tokens_of(file, per_token, t, std::min(tokens, t + step));
      const HostTensor out = run_op(*two, op, part).tensors.at(output);
      joined.insert(joined.end(), out.bytes.begin(), out.bytes.end());
    }
    EXPECT_EQ(joined, whole.bytes) << "in steps of " << step << " tokens";
  }
}

class LinearFormats : public ::testing::TestWithParam<WeightFormat> {};

TEST_P(LinearFormats, MatmulBitsDoNotDependOnTheBatch) {
  for (const std::int64_t inputs : {384, 1664}) {
    Random random(kSeed);
    OpFile file;
    file.tensors["x"] = normal(random, DType::bf16, {37, inputs});
    add_weight(file, random, "w", {21, inputs}, GetParam(), 0.1);
    for (const bool exact : {true, false}) expect_invariant("matmul", file, {"x"}, "out", exact);
  }
}

TEST_P(LinearFormats, ExpertBitsDoNotDependOnTheBatch) {
  Random random(kSeed);
  OpFile file;
  file.tensors["x"] = normal(random, DType::f32, {31, 256});
  file.tensors["experts"] = any_experts(random, 31, 3, 4);
  add_weight(file, random, "gate_w", {4, 13, 256}, GetParam(), 0.1);
  add_weight(file, random, "up_w", {4, 13, 256}, GetParam(), 0.1);
  for (const bool exact : {true, false})
    expect_invariant("expert_gate_up_swiglu", file, {"x", "experts"}, "out", exact);
}

TEST_P(LinearFormats, AbsorbedQueriesDoNotDependOnTheBatch) {
  Random random(kSeed);
  OpFile file;
  file.tensors["q_nope"] = normal(random, DType::f32, {9, 3, 24});
  add_weight(file, random, "kv_b", {3 * 40, 256}, GetParam(), 0.1);
  file.attributes["v"] = "16";
  expect_invariant("mla_absorb_q", file, {"q_nope"}, "q_latent", true);
}

INSTANTIATE_TEST_SUITE_P(Formats, LinearFormats, ::testing::ValuesIn(all_formats()), [](const auto& info) {
  std::string name = label(info.param);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

// Bytes that start one past an aligned address.
class Unaligned {
 public:
  explicit Unaligned(const HostTensor& tensor) : bytes_(tensor.bytes.size() + 1), tensor_(tensor) {
    std::memcpy(bytes_.data() + 1, tensor.bytes.data(), tensor.bytes.size());
  }
  ops::ConstView view() const { return {bytes_.data() + 1, tensor_.dtype, tensor_.shape}; }

 private:
  std::vector<std::byte> bytes_;
  HostTensor tensor_;
};

ops::ConstView view_of(const HostTensor& tensor) {
  return {tensor.bytes.data(), tensor.dtype, tensor.shape};
}

ops::Weight weight_of(const WeightFormat& format, const ops::ConstView& values, const ops::ConstView& scales,
                      const ops::ConstView& biases) {
  ops::Weight weight;
  weight.values = values;
  weight.scales = scales;
  weight.biases = biases;
  weight.mode = format.mode;
  weight.bits = format.bits;
  weight.group_size = format.group_size;
  return weight;
}

TEST(Linear, WeightsMayLieAnywhereAndRowsMayBeStrided) {
  for (const WeightFormat& format : {affine(4, 64), affine(3, 32), affine(8, 128, DType::f16)}) {
    Random random(kSeed);
    OpFile file;
    file.tensors["x"] = normal(random, DType::f32, {6, 384});
    add_weight(file, random, "w", {11, 384}, format, 0.1);
    const auto backend = ops::make_backend("cpu", {.threads = 2});
    const HostTensor want = run_op(*backend, "matmul", file).tensors.at("out");

    const Unaligned words(file.tensors["w.weight"]), scales(file.tensors["w.scales"]),
        biases(file.tensors["w.biases"]);
    HostTensor wide_x(DType::f32, {6, 400});
    for (std::int64_t t = 0; t < 6; ++t)
      std::memcpy(wide_x.data<float>() + t * 400 + 16, file.tensors["x"].data<float>() + t * 384, 384 * 4);
    HostTensor wide_out = constant(DType::f32, {6, 20}, NAN);
    ops::Matmul op;
    op.x = view_of(wide_x).columns(16, 384, {384});
    op.w = weight_of(format, words.view(), scales.view(), biases.view());
    op.out = ops::View(wide_out.bytes.data(), DType::f32, {6, 20}).columns(3, 11, {11});
    backend->run(op);
    for (std::int64_t t = 0; t < 6; ++t)
      for (std::int64_t i = 0; i < 20; ++i) {
        const double have = wide_out.at(t * 20 + i);
        if (i < 3 || i >= 14)
          EXPECT_TRUE(std::isnan(have)) << t << "," << i;
        else
          EXPECT_EQ(have, want.at(t * 11 + i - 3)) << t << "," << i;
      }
  }
}

TEST(Linear, ExpertsMayLieInSeparateBuffers) {
  const WeightFormat format = affine(4, 32);
  Random random(kSeed);
  OpFile file;
  file.tensors["x"] = normal(random, DType::f32, {5, 192});
  file.tensors["experts"] = integers(random, {5, 2}, 3);
  file.tensors["experts"].data<std::int32_t>()[0] = 3;  // of 5: expert 4 is never chosen
  add_weight(file, random, "w", {5, 10, 192}, format, 0.1);
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = ops::make_backend(name, {.threads = 2});
    const HostTensor want = run_op(*backend, "expert_matmul", file).tensors.at("out");
    std::vector<ops::Weight> separate;
    const ops::Weight stack = weight_of(format, view_of(file.tensors["w.weight"]),
                                        view_of(file.tensors["w.scales"]), view_of(file.tensors["w.biases"]));
    for (std::int64_t e = 0; e < 5; ++e) separate.push_back(stack[4 - e]);
    std::reverse(separate.begin(), separate.end());
    HostTensor have = constant(DType::f32, {5, 2, 10}, NAN);
    ops::ExpertMatmul op;
    op.x = view_of(file.tensors["x"]);
    op.w.separate = separate;
    op.experts = view_of(file.tensors["experts"]);
    op.out = ops::View(have.bytes.data(), DType::f32, have.shape);
    backend->run(op);
    EXPECT_EQ(have.bytes, want.bytes) << name;
  }
}

// Experts that no token chose may have any contents.
TEST(Linear, UnusedExpertsAreNotRead) {
  Random random(kSeed);
  OpFile file;
  file.tensors["x"] = normal(random, DType::f32, {4, 64});
  file.tensors["experts"] = integers(random, {4, 2}, 2);
  file.tensors["w"] = normal(random, DType::f32, {3, 7, 64});
  for (std::int64_t i = 2 * 7 * 64; i < 3 * 7 * 64; ++i) file.tensors["w"].data<float>()[i] = NAN;
  const auto backend = ops::make_backend("cpu", {.threads = 2});
  const HostTensor out = run_op(*backend, "expert_matmul", file).tensors.at("out");
  for (std::int64_t i = 0; i < out.shape.elements(); ++i) EXPECT_TRUE(std::isfinite(out.at(i)));
}

}  // namespace
}  // namespace sluice::runner
