// Errors of the ops of the gated delta rule: the message names the op, the field, what was given and what is
// allowed, and no output is written.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "sluice/error.h"
#include "sluice/ops/backend.h"

namespace sluice::ops {
namespace {

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

// Memory for the fields of one op; every element is poisoned at first.
class Memory {
 public:
  View operator()(const Shape& shape, DType type = DType::f32) {
    auto& block = blocks_.emplace_back(static_cast<std::size_t>(shape.elements()) + 1, kPoison);
    return {block.data(), type, shape};
  }
  ConstView indices(std::initializer_list<std::int32_t> values) {
    auto& block = ids_.emplace_back(values);
    return {block.data(), DType::i32, {static_cast<std::int64_t>(block.size())}};
  }
  bool untouched() const {
    for (const auto& block : blocks_)
      for (const float value : block)
        if (!std::isnan(value)) return false;
    return true;
  }

 private:
  std::vector<std::vector<float>> blocks_;
  std::vector<std::vector<std::int32_t>> ids_;
};

template <class Op>
void expect_refused(Op (*make)(Memory&), const std::function<void(Op&, Memory&)>& spoil,
                    std::initializer_list<std::string_view> parts) {
  for (const std::string_view name : {"reference", "cpu"}) {
    Memory memory;
    Op op = make(memory);
    spoil(op, memory);
    const auto backend = make_backend(name, {.threads = 1});
    try {
      backend->run(op);
      ADD_FAILURE() << name << " accepted it";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      const std::string message = error.what();
      EXPECT_NE(message.find(Op::kName), std::string::npos) << message;
      for (const std::string_view part : parts)
        EXPECT_NE(message.find(part), std::string::npos) << message << " does not say " << part;
    }
    EXPECT_TRUE(memory.untouched()) << name;
  }
}

CausalConv1d conv(Memory& memory) {
  CausalConv1d op;
  op.x = memory({3, 8});
  op.weight = memory({8, 4});
  op.state = memory({3, 8});
  op.out = memory({3, 8});
  return op;
}

DeltaGates gates(Memory& memory) {
  DeltaGates op;
  op.a = memory({3, 4});
  op.b = memory({3, 4});
  op.A_log = memory({4});
  op.dt_bias = memory({4});
  op.g = memory({3, 4});
  op.beta = memory({3, 4});
  return op;
}

DeltaRule rule(Memory& memory) {
  DeltaRule op;
  op.q = memory({3, 2, 32});
  op.k = memory({3, 2, 32});
  op.v = memory({3, 4, 64});
  op.g = memory({3, 4});
  op.beta = memory({3, 4});
  op.state = memory({4, 64, 32});
  op.out = memory({3, 4, 64});
  return op;
}

// Two key heads and four value heads: 2 * 2 * 32 + 4 * 64 channels.
DeltaStep step(Memory& memory) {
  DeltaStep op;
  op.qkv = memory({3, 384});
  op.z = memory({3, 4, 64});
  op.a = memory({3, 4});
  op.b = memory({3, 4});
  op.conv_weight = memory({384, 4});
  op.A_log = memory({4});
  op.dt_bias = memory({4});
  op.norm_weight = memory({64});
  op.conv_state = memory({3, 384});
  op.state = memory({4, 64, 32});
  op.out = memory({3, 4, 64});
  return op;
}

DeltaKkt kkt(Memory& memory) {
  DeltaKkt op;
  op.k = memory({2, 5, 2, 32});
  op.beta = memory({2, 5, 4});
  op.g = memory({2, 5, 4});
  op.A = memory({2, 5, 4, 4});
  op.chunk = 4;
  return op;
}

TEST(CheckDeltaStep, RefusesWhatDoesNotFit) {
  expect_refused<DeltaStep>(step, [](auto& op, auto&) { op.z = {}; }, {"'z'", "missing", "[T,Hv,Dv]"});
  expect_refused<DeltaStep>(step,
                            [](auto& op, auto& m) {
                              op.conv_state = m({4, 384});
                            },
                            {"'conv_state'", "[4,384]", "[3,384]"});
  expect_refused<DeltaStep>(step, [](auto& op, auto&) { op.state.dtype = DType::bf16; }, {"'state'", "BF16"});
  expect_refused<DeltaStep>(step, [](auto& op, auto&) { op.eps = -2; }, {"'eps'", "-2"});
  expect_refused<DeltaStep>(step, [](auto& op, auto&) { op.qk_eps = -1; }, {"'qk_eps'", "-1"});
  expect_refused<DeltaStep>(step, [](auto& op, auto& m) { op.slots = m.indices({0}); }, {"'slots'"});
}

TEST(CheckDeltaStep, RefusesChannelsThatAreNotWholeKeyHeads) {
  const auto with_channels = [](std::int64_t channels) {
    return [channels](DeltaStep& op, Memory& m) {
      op.qkv = m({3, channels});
      op.conv_weight = m({channels, 4});
      op.conv_state = m({3, channels});
    };
  };
  expect_refused<DeltaStep>(step, with_channels(385), {"'qkv'", "385", "2*Hk*32 + 256"});
  expect_refused<DeltaStep>(step, with_channels(256), {"'qkv'", "256"});
  expect_refused<DeltaStep>(step, with_channels(448), {"Hv", "Hk"});  // three key heads
}

TEST(CheckCausalConv1d, RefusesMissingAndNullFields) {
  expect_refused<CausalConv1d>(conv, [](auto& op, auto&) { op.x = {}; }, {"'x'", "missing", "[T,C]"});
  expect_refused<CausalConv1d>(conv, [](auto& op, auto&) { op.state = {}; }, {"'state'", "missing"});
  expect_refused<CausalConv1d>(conv, [](auto& op, auto&) { op.out.data = nullptr; }, {"'out'", "null"});
}

TEST(CheckCausalConv1d, RefusesWrongShapes) {
  expect_refused<CausalConv1d>(conv, [](auto& op, auto& m) { op.x = m({8}); }, {"'x'", "[8]", "[T,C]"});
  expect_refused<CausalConv1d>(conv,
                               [](auto& op, auto& m) {
                                 op.weight = m({7, 4});
                               },
                               {"'weight'", "[7,4]", "[8"});
  expect_refused<CausalConv1d>(conv,
                               [](auto& op, auto& m) {
                                 op.state = m({4, 8});
                               },
                               {"'state'", "[4,8]", "[3,8]"});
  expect_refused<CausalConv1d>(conv,
                               [](auto& op, auto& m) {
                                 op.out = m({2, 8});
                               },
                               {"'out'", "[2,8]", "[3,8]"});
  expect_refused<CausalConv1d>(conv, [](auto& op, auto& m) { op.x = m({0, 8}); }, {"'x'", "at least 1"});
}

TEST(CheckCausalConv1d, RefusesWrongTypes) {
  expect_refused<CausalConv1d>(conv, [](auto& op, auto&) { op.x.dtype = DType::f16; },
                               {"'x'", "F16", "F32 or BF16"});
  expect_refused<CausalConv1d>(conv, [](auto& op, auto&) { op.weight.dtype = DType::u8; },
                               {"'weight'", "U8"});
  expect_refused<CausalConv1d>(conv, [](auto& op, auto&) { op.state.dtype = DType::bf16; },
                               {"'state'", "BF16", "F32"});
  expect_refused<CausalConv1d>(conv, [](auto& op, auto&) { op.out.dtype = DType::bf16; },
                               {"'out'", "BF16", "'x'"});
}

TEST(CheckCausalConv1d, RefusesOverlap) {
  expect_refused<CausalConv1d>(conv, [](auto& op, auto&) { op.out.data = op.state.data; },
                               {"overlaps", "'state'", "'out'"});
  expect_refused<CausalConv1d>(conv, [](auto& op, auto&) { op.x = op.out; }, {"'out'", "overlaps", "'x'"});
}

TEST(CheckCausalConv1d, RefusesWrongSequences) {
  const auto pooled = [](Memory& memory) {
    CausalConv1d op = conv(memory);
    op.state = memory({2, 3, 8});
    op.seq_starts = memory.indices({0, 1, 3});
    return op;
  };
  expect_refused<CausalConv1d>(conv, [](auto& op, auto& m) { op.slots = m.indices({0}); },
                               {"'slots'", "'seq_starts'"});
  expect_refused<CausalConv1d>(pooled,
                               [](auto& op, auto& m) {
                                 op.seq_starts = m.indices({0, 1, 2});
                               },
                               {"'seq_starts'", "T = 3"});
  expect_refused<CausalConv1d>(pooled,
                               [](auto& op, auto& m) {
                                 op.seq_starts = m.indices({0, 3, 1, 3});
                               },
                               {"'seq_starts'"});
  expect_refused<CausalConv1d>(pooled,
                               [](auto& op, auto& m) {
                                 op.slots = m.indices({0, 2});
                               },
                               {"'slots'", "2", "0 to 1"});
  expect_refused<CausalConv1d>(pooled,
                               [](auto& op, auto& m) {
                                 op.slots = m.indices({1, 1});
                               },
                               {"'slots'", "twice"});
  expect_refused<CausalConv1d>(pooled, [](auto& op, auto& m) { op.slots = m.indices({1}); },
                               {"'slots'", "1", "2"});
}

TEST(CheckDeltaGates, RefusesWrongFields) {
  expect_refused<DeltaGates>(gates, [](auto& op, auto&) { op.b = {}; }, {"'b'", "missing"});
  expect_refused<DeltaGates>(gates, [](auto& op, auto& m) { op.b = m({3, 5}); }, {"'b'", "[3,5]", "[3,4]"});
  expect_refused<DeltaGates>(gates, [](auto& op, auto& m) { op.A_log = m({3}); }, {"'A_log'", "[3]", "[4]"});
  expect_refused<DeltaGates>(gates,
                             [](auto& op, auto& m) {
                               op.dt_bias = m({1, 4});
                             },
                             {"'dt_bias'", "[1,4]", "[Hv]"});
  expect_refused<DeltaGates>(gates, [](auto& op, auto&) { op.a.dtype = DType::f16; },
                             {"'a'", "F16", "F32 or BF16"});
  expect_refused<DeltaGates>(gates, [](auto& op, auto&) { op.g.dtype = DType::bf16; },
                             {"'g'", "BF16", "F32"});
  expect_refused<DeltaGates>(gates, [](auto& op, auto&) { op.beta.dtype = DType::bf16; },
                             {"'beta'", "BF16", "F32"});
  expect_refused<DeltaGates>(gates, [](auto& op, auto&) { op.beta.data = op.g.data; },
                             {"overlaps", "'g'", "'beta'"});
}

TEST(CheckDeltaRule, RefusesMissingAndNullFields) {
  expect_refused<DeltaRule>(rule, [](auto& op, auto&) { op.g = {}; }, {"'g'", "missing", "[T,Hv]"});
  expect_refused<DeltaRule>(rule, [](auto& op, auto&) { op.state.data = nullptr; }, {"'state'", "null"});
}

TEST(CheckDeltaRule, RefusesWrongShapes) {
  expect_refused<DeltaRule>(rule,
                            [](auto& op, auto& m) {
                              op.q = m({3, 64});
                            },
                            {"'q'", "[3,64]", "[T,Hk,Dk]"});
  expect_refused<DeltaRule>(rule,
                            [](auto& op, auto& m) {
                              op.k = m({3, 2, 64});
                            },
                            {"'k'", "[3,2,64]", "[3,2,32]"});
  expect_refused<DeltaRule>(rule, [](auto& op, auto& m) { op.v = m({2, 4, 64}); }, {"'v'", "[2,4,64]", "[3"});
  expect_refused<DeltaRule>(rule, [](auto& op, auto& m) { op.g = m({3, 2}); }, {"'g'", "[3,2]", "[3,4]"});
  expect_refused<DeltaRule>(rule,
                            [](auto& op, auto& m) {
                              op.state = m({4, 32, 64});
                            },
                            {"'state'", "[4,32,64]", "[4,64,32]"});
  expect_refused<DeltaRule>(rule,
                            [](auto& op, auto& m) {
                              op.state = m({1, 4, 64, 32});
                            },
                            {"'state'", "[1,4,64,32]"});
}

TEST(CheckDeltaRule, RefusesWidthsAndRatiosOutOfRange) {
  const auto widths = [](std::int64_t key_width, std::int64_t value_width) {
    return [=](DeltaRule& op, Memory& memory) {
      op.q = memory({3, 2, key_width});
      op.k = memory({3, 2, key_width});
      op.v = memory({3, 4, value_width});
      op.state = memory({4, value_width, key_width});
      op.out = memory({3, 4, value_width});
    };
  };
  expect_refused<DeltaRule>(rule, widths(48, 64), {"Dk", "48", "multiple of 32 up to 256"});
  expect_refused<DeltaRule>(rule, widths(288, 64), {"Dk", "288", "multiple of 32 up to 256"});
  expect_refused<DeltaRule>(rule, widths(32, 16), {"Dv", "16", "multiple of 32 up to 256"});
  expect_refused<DeltaRule>(rule,
                            [](auto& op, auto& m) {
                              op.q = m({3, 3, 32});
                              op.k = m({3, 3, 32});
                            },
                            {"Hv", "4", "Hk", "3"});
}

TEST(CheckDeltaRule, RefusesWrongTypesAndOverlap) {
  expect_refused<DeltaRule>(rule, [](auto& op, auto&) { op.state.dtype = DType::bf16; },
                            {"'state'", "BF16", "F32"});
  expect_refused<DeltaRule>(rule, [](auto& op, auto&) { op.g.dtype = DType::bf16; }, {"'g'", "BF16", "F32"});
  expect_refused<DeltaRule>(rule, [](auto& op, auto&) { op.out.dtype = DType::bf16; },
                            {"'out'", "BF16", "'q'"});
  expect_refused<DeltaRule>(rule, [](auto& op, auto&) { op.out.data = const_cast<void*>(op.v.data); },
                            {"'out'", "overlaps", "'v'"});
}

TEST(CheckDeltaRule, RefusesGatesThatAreNoDecay) {
  // Memory is NaN at first; a rejected op must not change it.
  expect_refused<DeltaRule>(rule, [](auto&, auto&) {}, {"'g'", "nan at [0,0]", "at most 0"});
  std::vector<float> g(12, -1.0f);
  g[2] = -std::numeric_limits<float>::infinity();
  g[6] = 0.5f;
  expect_refused<DeltaRule>(rule,
                            [&](auto& op, auto&) {
                              op.g = ConstView(g.data(), DType::f32, {3, 4});
                            },
                            {"'g'", "0.5 at [1,2]", "at most 0"});
}

TEST(CheckDeltaRule, RefusesWrongSequences) {
  const auto pooled = [](Memory& memory) {
    DeltaRule op = rule(memory);
    op.state = memory({2, 4, 64, 32});
    op.seq_starts = memory.indices({0, 1, 3});
    return op;
  };
  expect_refused<DeltaRule>(pooled,
                            [](auto& op, auto& m) {
                              op.seq_starts = m.indices({0, 1, 2, 3});
                            },
                            {"'seq_starts'", "3", "2 rows"});
  expect_refused<DeltaRule>(pooled,
                            [](auto& op, auto& m) {
                              op.slots = m.indices({0, -1});
                            },
                            {"'slots'", "-1"});
  expect_refused<DeltaRule>(pooled,
                            [](auto& op, auto& m) {
                              op.state = m({4, 64, 32});
                            },
                            {"'state'", "[4,64,32]"});
}

TEST(CheckDeltaKkt, RefusesWrongFields) {
  expect_refused<DeltaKkt>(kkt, [](auto& op, auto&) { op.k = {}; }, {"'k'", "missing"});
  expect_refused<DeltaKkt>(kkt,
                           [](auto& op, auto& m) {
                             op.k = m({5, 2, 32});
                           },
                           {"'k'", "[5,2,32]", "[B,T,Hg,K]"});
  expect_refused<DeltaKkt>(kkt,
                           [](auto& op, auto& m) {
                             op.beta = m({2, 4, 4});
                           },
                           {"'beta'", "[2,4,4]", "[2,5"});
  expect_refused<DeltaKkt>(kkt,
                           [](auto& op, auto& m) {
                             op.A = m({2, 5, 4, 8});
                           },
                           {"'A'", "[2,5,4,8]", "[2,5,4,4]"});
  expect_refused<DeltaKkt>(kkt, [](auto& op, auto&) { op.chunk = 0; }, {"'chunk' is 0", "1 to 65536"});
  expect_refused<DeltaKkt>(kkt, [](auto& op, auto&) { op.chunk = std::int64_t{1} << 62; },
                           {"'chunk'", "1 to 65536"});
  expect_refused<DeltaKkt>(kkt, [](auto& op, auto&) { op.A.dtype = DType::bf16; }, {"'A'", "BF16", "F32"});
  expect_refused<DeltaKkt>(kkt, [](auto& op, auto& m) { op.k = m({2, 5, 3, 32}); }, {"H", "4", "Hg", "3"});
  expect_refused<DeltaKkt>(kkt, [](auto& op, auto&) { op.beta.data = op.A.data; }, {"'A'", "overlaps"});
}

}  // namespace
}  // namespace sluice::ops
