// Errors of the rotation and the TurboQuant ops: the message names the op, the field, what was given and what
// is allowed, and nothing is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "expect_error.h"
#include "sluice/ops/backend.h"

namespace sluice::ops {
namespace {

constexpr std::int64_t kTokens = 3;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kWidth = 64;
constexpr std::int64_t kSlots = 8;
constexpr std::byte kPoison{0xa5};

using Parts = std::initializer_list<std::string_view>;

class CheckTurboquant : public ::testing::Test {
 protected:
  // Every field has its own part of one poisoned block.
  View field(DType type, const Shape& shape) {
    const View view(memory_.data() + used_, type, shape);
    used_ += (static_cast<std::size_t>(shape.elements()) * size_bytes(type) + 63) / 64 * 64;
    EXPECT_LE(used_, memory_.size());
    return view;
  }
  View numbers(std::initializer_list<std::int32_t> values) {
    const View view = field(DType::i32, {static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), static_cast<std::int32_t*>(view.data));
    return view;
  }

  Hadamard hadamard() {
    Hadamard op;
    op.x = field(DType::f32, {kTokens, kWidth});
    op.signs = field(DType::u8, {kWidth / 8});
    op.out = field(DType::f32, {kTokens, kWidth});
    return op;
  }
  TurboquantEncode encode() {
    TurboquantEncode op;
    op.x = field(DType::bf16, {kTokens, kHeads, kWidth});
    op.codes = field(DType::u8, {kHeads, kTokens, kWidth / 2});
    op.norms = field(DType::f32, {kHeads, kTokens});
    return op;
  }
  TurboquantDecode decode() {
    TurboquantDecode op;
    op.codes = field(DType::u8, {kHeads, kTokens, kWidth / 2});
    op.norms = field(DType::f32, {kHeads, kTokens});
    op.out = field(DType::f32, {kTokens, kHeads, kWidth});
    return op;
  }
  TurboquantAppend append() {
    TurboquantAppend op;
    op.k = field(DType::f32, {kTokens, kKvHeads, kWidth});
    op.v = field(DType::f32, {kTokens, kKvHeads, kWidth});
    op.k_codes = field(DType::u8, {kKvHeads, kSlots, kWidth / 2});
    op.v_codes = field(DType::u8, {kKvHeads, kSlots, kWidth / 2});
    op.k_norms = field(DType::f32, {kKvHeads, kSlots});
    op.v_norms = field(DType::f32, {kKvHeads, kSlots});
    return op;
  }
  QkNormRopeTurboquantAppend turned_append() {
    QkNormRopeTurboquantAppend op;
    const TurboquantAppend part = append();
    op.q = field(DType::f32, {kTokens, kHeads, kWidth});
    op.k = field(DType::f32, {kTokens, kKvHeads, kWidth});
    op.v = part.v;
    op.q_weight = field(DType::f32, {kWidth});
    op.k_weight = field(DType::f32, {kWidth});
    op.inv_freq = field(DType::f32, {kWidth / 2});
    op.positions = numbers({0, 1, 2});
    op.k_codes = part.k_codes;
    op.v_codes = part.v_codes;
    op.k_norms = part.k_norms;
    op.v_norms = part.v_norms;
    return op;
  }
  TurboquantAttention attention() {
    TurboquantAttention op;
    op.q = field(DType::f32, {kTokens, kHeads, kWidth});
    op.k_codes = field(DType::u8, {kKvHeads, kSlots, kWidth / 2});
    op.v_codes = field(DType::u8, {kKvHeads, kSlots, kWidth / 2});
    op.k_norms = field(DType::f32, {kKvHeads, kSlots});
    op.v_norms = field(DType::f32, {kKvHeads, kSlots});
    op.out = field(DType::f32, {kTokens, kHeads, kWidth});
    op.length = 5;
    return op;
  }
  // The same with a pool of two caches.
  template <class Op>
  Op pooled(Op op) {
    op.k_codes = field(DType::u8, {2, kKvHeads, kSlots, kWidth / 2});
    op.v_codes = field(DType::u8, {2, kKvHeads, kSlots, kWidth / 2});
    op.k_norms = field(DType::f32, {2, kKvHeads, kSlots});
    op.v_norms = field(DType::f32, {2, kKvHeads, kSlots});
    op.seq_starts = numbers({0, 1, kTokens});
    return op;
  }

  template <class Op>
  void refused(const Op& op, Parts parts) {
    const std::vector<std::byte> before = memory_;
    for (const char* name : {"reference", "cpu"}) {
      const auto backend = make_backend(name, {.threads = 1});
      expect_error(ErrorKind::input, {Op::kName}, [&] { backend->run(op); });
      expect_error(ErrorKind::input, parts, [&] { backend->run(op); });
      EXPECT_TRUE(memory_ == before) << name << " wrote";
    }
  }
  template <class Op>
  void accepted(const Op& op) {
    EXPECT_NO_THROW(check(op));
  }

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(1 << 18, kPoison);
  std::size_t used_ = 0;
};

TEST_F(CheckTurboquant, ValidCallsAreAccepted) {
  accepted(hadamard());
  accepted(encode());
  accepted(decode());
  accepted(append());
  accepted(turned_append());
  accepted(attention());
}

TEST_F(CheckTurboquant, TurnedAppend) {
  const QkNormRopeTurboquantAppend good = turned_append();
  QkNormRopeTurboquantAppend op = good;
  op.inv_freq = field(DType::f32, {kWidth / 2 + 1});
  refused(op, {"'inv_freq'", "33", "D = 64"});
  op = good;
  op.eps = -1;
  refused(op, {"'eps'", "-1"});
  op = good;
  op.k_bits = 7;
  refused(op, {"'k_bits'", "7", "2, 3, 4, 5, 6 or 8"});
  op = good;
  op.v = field(DType::f32, {kTokens, kKvHeads, kWidth / 2});
  refused(op, {"'v'", "[3,2,32]"});
  op = good;
  op.start = -1;
  refused(op, {"'start' is -1", "negative"});
  op = good;
  op.q = op.k;
  refused(op, {"'q'", "'k'"});
  op = pooled(good);
  op.start = SequenceValue(ConstView(numbers({0, -7})));
  refused(op, {"'start' is -7", "sequence 1"});
}

TEST_F(CheckTurboquant, AttentionTakesOwnRowsInPairsAndOneCount) {
  TurboquantAttention op = attention();
  op.k_new = field(DType::f32, {kTokens, kKvHeads, kWidth});
  refused(op, {"'k_new'", "'v_new'"});
  op.v_new = field(DType::f32, {kTokens, kKvHeads, kWidth});
  accepted(op);
  op.start = 2;
  refused(op, {"'length' 5", "'start' 2", "one of them"});
  op.length = 0;
  accepted(op);
  op.start = kSlots - kTokens + 1;
  refused(op, {"'length'", "S = 8"});
}

TEST_F(CheckTurboquant, SixteenBitsAreForCachesOnly) {
  TurboquantAppend op = append();
  op.v_bits = 16;
  op.v_codes = field(DType::u8, {kKvHeads, kSlots, kWidth * 2});
  accepted(op);
  TurboquantEncode alone = encode();
  alone.bits = 16;
  refused(alone, {"'bits'", "16", "2, 3, 4, 5, 6 or 8"});
}

TEST_F(CheckTurboquant, LatentRowsStayInTheCache) {
  MlaTurboquantAppend op;
  op.kv_latent = field(DType::f32, {kTokens, kWidth});
  op.k_pe = field(DType::f32, {kTokens, 8});
  op.latent_codes = field(DType::u8, {kSlots, kWidth / 2});
  op.latent_norms = field(DType::f32, {kSlots});
  op.rope_cache = field(DType::bf16, {kSlots, 8});
  op.start = kSlots - kTokens;
  accepted(op);
  op.start = kSlots - kTokens + 1;
  refused(op, {"'start'", "8 rows"});
  op.start = 0;
  op.bits = 7;
  refused(op, {"'bits'", "7"});
}

TEST_F(CheckTurboquant, HadamardWidth) {
  for (const std::int64_t width : {8, 16, 48, 96, 2048}) {
    Hadamard op;
    op.x = field(DType::f32, {1, width});
    op.out = field(DType::f32, {1, width});
    refused(op, {"D is " + std::to_string(width), "power of two from 32 to 1024"});
  }
}

TEST_F(CheckTurboquant, HadamardFields) {
  const Hadamard good = hadamard();
  Hadamard op = good;
  op.x = {};
  refused(op, {"'x'"});
  op = good;
  op.x.data = nullptr;
  refused(op, {"'x'", "null"});
  op = good;
  op.x = field(DType::i32, {kTokens, kWidth});
  refused(op, {"'x'", "I32", "F32 or BF16"});
  op = good;
  op.signs = field(DType::u8, {kWidth / 8 + 1});
  refused(op, {"'signs'", "[9]", "[8]"});
  op = good;
  op.signs = field(DType::f32, {kWidth / 8});
  refused(op, {"'signs'", "F32", "U8"});
  op = good;
  op.out = field(DType::f32, {kTokens + 1, kWidth});
  refused(op, {"'out'", "[4,64]"});
  op = good;
  op.out = field(DType::bf16, {kTokens, kWidth});
  refused(op, {"'out'", "BF16", "F32"});
}

TEST_F(CheckTurboquant, HadamardMayWorkInPlaceButNotBesideItself) {
  Hadamard op = hadamard();
  op.out = View(const_cast<void*>(op.x.data), DType::f32, op.x.shape);
  accepted(op);
  op.out.data = static_cast<float*>(op.out.data) + kWidth;
  refused(op, {"'out'", "'x'"});
}

TEST_F(CheckTurboquant, EncodeBits) {
  for (const std::int64_t bits : {-1, 0, 1, 7, 9, 16}) {
    TurboquantEncode op = encode();
    op.bits = bits;
    op.codes = field(DType::u8, {kHeads, kTokens, std::max<std::int64_t>(1, kWidth * bits / 8)});
    refused(op, {"bits"});
  }
}

// The codes' shape follows from the bits, but the message is about the bits.
TEST_F(CheckTurboquant, BitsComeBeforeShapes) {
  for (const std::int64_t bits : {-4, 0, 7}) {
    const std::string given = "is " + std::to_string(bits);
    TurboquantEncode encoded = encode();
    encoded.bits = bits;
    refused(encoded, {"'bits'", given, "2, 3, 4, 5, 6 or 8"});
    TurboquantDecode decoded = decode();
    decoded.bits = bits;
    refused(decoded, {"'bits'", given, "2, 3, 4, 5, 6 or 8"});
    TurboquantAppend appended = append();
    appended.v_bits = bits;
    refused(appended, {"'v_bits'", given, "2, 3, 4, 5, 6 or 8"});
    TurboquantAttention attended = attention();
    attended.k_bits = bits;
    refused(attended, {"'k_bits'", given, "2, 3, 4, 5, 6 or 8"});
  }
}

TEST_F(CheckTurboquant, EncodeFields) {
  const TurboquantEncode good = encode();
  TurboquantEncode op = good;
  op.x = field(DType::bf16, {kTokens, kWidth});
  refused(op, {"'x'", "[3,64]", "[T,H,D]"});
  op = good;
  op.codes = field(DType::u8, {kTokens, kHeads, kWidth / 2});
  refused(op, {"'codes'", "[3,4,32]", "[4,3,32]"});
  op = good;
  op.bits = 3;
  refused(op, {"'codes'", "[4,3,32]", "[4,3,24]"});
  op = good;
  op.norms = field(DType::bf16, {kHeads, kTokens});
  refused(op, {"'norms'", "BF16", "F32"});
  op = good;
  op.codes.data = const_cast<void*>(op.x.data);
  refused(op, {"'codes'", "'x'"});
  op = good;
  op.x = field(DType::bf16, {kTokens, kHeads, 48});
  op.codes = field(DType::u8, {kHeads, kTokens, 24});
  refused(op, {"D is 48", "32 to 1024"});
}

TEST_F(CheckTurboquant, DecodeFields) {
  const TurboquantDecode good = decode();
  TurboquantDecode op = good;
  op.bits = 8;
  refused(op, {"'out'"});
  op = good;
  op.bits = 7;
  refused(op, {"bits"});
  op = good;
  op.norms = field(DType::f32, {kHeads, kTokens + 1});
  refused(op, {"'norms'", "[4,4]", "[4,3]"});
  op = good;
  op.out = field(DType::i32, {kTokens, kHeads, kWidth});
  refused(op, {"'out'", "I32"});
  op = good;
  op.out = {};
  refused(op, {"'out'"});
  op = good;
  op.codes = field(DType::f32, {kHeads, kTokens, kWidth / 2});
  refused(op, {"'codes'", "F32", "U8"});
}

TEST_F(CheckTurboquant, AppendFields) {
  const TurboquantAppend good = append();
  TurboquantAppend op = good;
  op.v = field(DType::f32, {kTokens + 1, kKvHeads, kWidth});
  refused(op, {"'v'", "[4,2,64]", "[3,2,64]"});
  op = good;
  op.k_bits = 8;
  refused(op, {"'k_codes'", "[2,8,32]", "[2,8,64]"});
  op = good;
  op.v_bits = 1;
  op.v_codes = field(DType::u8, {kKvHeads, kSlots, kWidth / 8});
  refused(op, {"'v_bits' is 1", "2, 3, 4, 5, 6 or 8"});
  op = good;
  op.v_norms = field(DType::f32, {kKvHeads, kSlots + 1});
  refused(op, {"'v_norms'", "[2,9]", "[2,8]"});
  op = good;
  op.start = -1;
  refused(op, {"'start' is -1", "negative"});
  op = good;
  op.v_codes = op.k_codes;
  refused(op, {"'v_codes'", "'k_codes'"});
  op = good;
  op.start = std::numeric_limits<std::int64_t>::max();
  accepted(op);  // a ring has no end
}

TEST_F(CheckTurboquant, AppendSequences) {
  TurboquantAppend op = pooled(append());
  op.start = SequenceValue(ConstView(numbers({0, 7})));
  accepted(op);
  op.start = SequenceValue(ConstView(numbers({0, -7})));
  refused(op, {"'start' is -7", "sequence 1"});
  op.start = SequenceValue(ConstView(numbers({0})));
  refused(op, {"'start'", "[1]", "[2]"});
  op.start = 3;
  refused(op, {"'start'", "field I32 [B]"});
  op.start = SequenceValue(ConstView(numbers({0, 7})));
  op.slots = numbers({1, 1});
  refused(op, {"'slots'", "twice"});
  op.slots = numbers({0, 2});
  refused(op, {"'slots' has 2", "0 to 1"});
}

TEST_F(CheckTurboquant, AttentionRows) {
  TurboquantAttention op = attention();
  for (const std::int64_t length : {std::int64_t{-1}, kTokens - 1, kSlots + 1}) {
    op.length = length;
    refused(op, {"'length' is " + std::to_string(length), "3 tokens", "S = 8"});
  }
  op.length = 5;
  op.ring_start = 1;
  refused(op, {"'ring_start' is 1", "length 5"});
  op.length = kSlots;
  accepted(op);
  for (const std::int64_t start : {std::int64_t{-1}, kSlots}) {
    op.ring_start = start;
    refused(op, {"'ring_start' is " + std::to_string(start), "[0,S)"});
  }
}

TEST_F(CheckTurboquant, AttentionFields) {
  const TurboquantAttention good = attention();
  TurboquantAttention op = good;
  op.q = field(DType::f32, {kTokens, 3, kWidth});
  op.out = field(DType::f32, {kTokens, 3, kWidth});
  refused(op, {"H = 3", "KH = 2"});
  op = good;
  op.out = field(DType::bf16, {kTokens, kHeads, kWidth});
  refused(op, {"'out'", "BF16", "F32"});
  op = good;
  op.v_codes = field(DType::u8, {kKvHeads, kSlots + 1, kWidth / 2});
  refused(op, {"'v_codes'", "[2,9,32]", "[2,8,32]"});
  op = good;
  op.k_norms = {};
  refused(op, {"'k_norms'"});
  op = good;
  op.out.data = const_cast<void*>(op.q.data);
  refused(op, {"'out'", "'q'"});
}

TEST_F(CheckTurboquant, AttentionAttributes) {
  const TurboquantAttention good = attention();
  TurboquantAttention op = good;
  op.window = -1;
  refused(op, {"'window' is -1"});
  op = good;
  op.k_bits = 5;
  refused(op, {"'k_codes'", "[2,8,40]"});
  op = good;
  op.scale = std::numeric_limits<double>::quiet_NaN();
  refused(op, {"'scale'", "finite"});
  op.scale = std::numeric_limits<double>::infinity();
  refused(op, {"'scale'", "finite"});
}

TEST_F(CheckTurboquant, AttentionSequences) {
  TurboquantAttention op = pooled(attention());
  op.length = SequenceValue(ConstView(numbers({1, 8})));
  op.ring_start = SequenceValue(ConstView(numbers({0, 5})));
  accepted(op);
  op.length = SequenceValue(ConstView(numbers({1, 1})));
  refused(op, {"'length' is 1", "2 tokens of sequence 1"});
  op.length = SequenceValue(ConstView(numbers({1, 7})));
  refused(op, {"'ring_start' is 5", "length 7"});
  op.seq_starts = numbers({0, 2, 2});
  refused(op, {"'seq_starts'", "0 to 2", "T = 3"});
  op.seq_starts = {};
  refused(op, {"k_codes"});
}

}  // namespace
}  // namespace sluice::ops
