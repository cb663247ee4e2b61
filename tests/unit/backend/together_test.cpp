// Ops that run together give the bits of separate ops, whatever they share.
#include <gtest/gtest.h>

#include <algorithm>

#include "isas_here.h"
#include "printed_seed.h"
#include "runner/cases/weight_formats.h"
#include "sluice/ops/backend.h"

namespace sluice::runner {
namespace {

using ops::DType;

constexpr std::int64_t kColumns = 256;
constexpr std::int64_t kExperts = 6;
constexpr std::int64_t kChoices = 3;

class Together : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { random_ = Random(printed_seed()); }

  ops::Weight weight(const ops::Shape& shape, const WeightFormat& format) {
    const std::string name = "w" + std::to_string(names_++);
    add_weight(file_, random_, name, shape, format, 0.1);
    const auto view = [&](const std::string& part) {
      const auto found = file_.tensors.find(name + part);
      if (found == file_.tensors.end()) return ops::ConstView();
      return ops::ConstView(found->second.bytes.data(), found->second.dtype, found->second.shape);
    };
    if (!format.quantized) return {.values = view(""), .scales = {}, .biases = {}};
    return {view(".weight"), view(".scales"), view(".biases"), format.mode, format.bits, format.group_size};
  }
  ops::ConstView input(const ops::Shape& shape) {
    HostTensor& x = file_.tensors["x" + std::to_string(names_++)] = normal(random_, DType::f32, shape);
    return {x.bytes.data(), x.dtype, x.shape};
  }
  ops::ConstView choices(std::int64_t tokens) {
    HostTensor& chosen = file_.tensors["e" + std::to_string(names_++)];
    chosen = HostTensor(DType::i32, {tokens, kChoices});
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t k = 0; k < kChoices; ++k)
        chosen.data<std::int32_t>()[t * kChoices + k] = static_cast<std::int32_t>((t * t + k) % kExperts);
    return {chosen.bytes.data(), chosen.dtype, chosen.shape};
  }
  ops::View output(const ops::Shape& shape) {
    HostTensor& out = file_.tensors["out" + std::to_string(names_++)] = HostTensor(DType::f32, shape);
    outputs_.push_back(&out);
    return {out.bytes.data(), out.dtype, out.shape};
  }
  ops::Matmul product(const ops::ConstView& x, std::int64_t rows, const WeightFormat& format) {
    return {.x = x, .w = weight({rows, x.dim(1)}, format), .out = output({x.dim(0), rows})};
  }

  // Results of the ops separately and together, on one and on three threads, rounded and exact.
  template <class... Ops>
  void expect_same(const std::string& what, const Ops&... ops) {
    for (const bool exact : {false, true})
      for (const int threads : {1, 3}) {
        const auto backend =
            ops::make_backend("cpu", {.threads = threads, .exact = exact, .isa = GetParam()});
        const auto results = [&](auto&& run) {
          for (HostTensor* out : outputs_) std::fill(out->bytes.begin(), out->bytes.end(), std::byte{0xff});
          run();
          std::vector<std::vector<std::byte>> all;
          for (const HostTensor* out : outputs_) all.push_back(out->bytes);
          return all;
        };
        const auto alone = results([&] { (backend->run(ops), ...); });
        const auto together = results([&] { backend->run_together(ops::Phase::automatic, ops...); });
        for (std::size_t i = 0; i < alone.size(); ++i)
          EXPECT_TRUE(alone[i] == together[i])
              << what << ", output " << i << ", " << threads << " threads" << (exact ? ", exact" : "");
      }
    outputs_.clear();
    file_ = {};
  }

  Random random_{0};

 private:
  OpFile file_;
  std::vector<HostTensor*> outputs_;
  int names_ = 0;
};

TEST_P(Together, ProductsOfOneInput) {
  const std::vector<WeightFormat> formats = all_formats();
  for (const std::int64_t tokens : {1, 3, 8, 40, 150})
    for (const WeightFormat& format : formats) {
      const WeightFormat other = formats[static_cast<std::size_t>(random_.integer(std::ssize(formats)))];
      const ops::ConstView x = input({tokens, kColumns});
      const ops::ConstView y = input({tokens, kColumns});
      expect_same(std::to_string(tokens) + " tokens, " + label(format) + " and " + label(other),
                  product(x, 70, format), product(x, 1, other), product(x, 36, format),
                  product(y, 33, format), product(x, 5, other));
    }
}

TEST_P(Together, ExpertsAndTheSharedOne) {
  for (const std::int64_t tokens : {1, 2, 9, 64})
    for (const WeightFormat& format : common_formats())
      for (const WeightFormat& shared : {format, affine(8, 64)}) {
        const std::string what =
            std::to_string(tokens) + " tokens, " + label(format) + " and " + label(shared);
        const ops::ConstView h = input({tokens, kColumns});
        expect_same(what,
                    ops::ExpertGateUpSwiglu{
                        .x = h,
                        .gate_w = {.stack = weight({kExperts, 64, kColumns}, format), .separate = {}},
                        .up_w = {.stack = weight({kExperts, 64, kColumns}, format), .separate = {}},
                        .experts = choices(tokens),
                        .out = output({tokens, kChoices, 64})},
                    ops::GateUpSwiglu{.x = h,
                                      .gate_w = weight({96, kColumns}, shared),
                                      .up_w = weight({96, kColumns}, shared),
                                      .out = output({tokens, 96})});
        expect_same(what,
                    ops::ExpertMatmul{.x = input({tokens, kChoices, 128}),
                                      .w = {.stack = weight({kExperts, 80, 128}, format), .separate = {}},
                                      .experts = choices(tokens),
                                      .out = output({tokens, kChoices, 80})},
                    product(input({tokens, kColumns}), 80, shared));
      }
}

TEST_P(Together, OtherOpsAmongThem) {
  const ops::ConstView x = input({4, kColumns});
  const WeightFormat format = affine(4, 64);
  expect_same("a norm", product(x, 40, format),
              ops::RmsNorm{.x = x, .weight = {}, .out = output({4, kColumns})}, product(x, 20, format));
}

INSTANTIATE_TEST_SUITE_P(Cpu, Together, ::testing::ValuesIn(isas_here()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sluice::runner
