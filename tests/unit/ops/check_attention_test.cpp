// Errors of attention and its caches: the message names the op, the field, what was given and what is
// allowed, and nothing is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>

#include "expect_error.h"
#include "sluice/ops/backend.h"

namespace sluice::ops {
namespace {

// Memory for one op's fields; outputs and caches hold a pattern that must survive an error.
class Memory {
 public:
  View operator()(const Shape& shape, DType type = DType::f32) {
    auto& block =
        blocks_.emplace_back(static_cast<std::size_t>(shape.elements()) * size_bytes(type), kPattern);
    return {block.data(), type, shape};
  }
  ConstView indices(std::initializer_list<std::int32_t> values) {
    const auto& block = indices_.emplace_back(values);
    return {block.data(), DType::i32, {static_cast<std::int64_t>(block.size())}};
  }
  bool untouched() const {
    return std::all_of(blocks_.begin(), blocks_.end(), [](const auto& block) {
      return std::all_of(block.begin(), block.end(), [](std::byte b) { return b == kPattern; });
    });
  }

 private:
  static constexpr std::byte kPattern{0x3f};
  std::deque<std::vector<std::byte>> blocks_;
  std::deque<std::vector<std::int32_t>> indices_;
};

template <class Op>
Op valid(Memory& memory);

template <>
KvAppend valid(Memory& memory) {
  KvAppend op;
  op.k = memory({3, 2, 8});
  op.v = memory({3, 2, 4});
  op.k_cache = memory({10, 2, 8});
  op.v_cache = memory({10, 2, 4});
  return op;
}
template <>
QkNormRopeAppend valid(Memory& memory) {
  QkNormRopeAppend op;
  op.q = memory({3, 4, 8});
  op.k = memory({3, 2, 8});
  op.v = memory({3, 2, 4});
  op.q_weight = memory({8});
  op.k_weight = memory({8});
  op.inv_freq = memory({4});
  op.positions = memory.indices({0, 1, 2});
  op.k_cache = memory({10, 2, 8});
  op.v_cache = memory({10, 2, 4});
  return op;
}
template <>
Attention valid(Memory& memory) {
  Attention op;
  op.q = memory({3, 4, 8});
  op.k_cache = memory({10, 2, 8});
  op.v_cache = memory({10, 2, 4});
  op.out = memory({3, 4, 4});
  return op;
}
template <>
MlaAppend valid(Memory& memory) {
  MlaAppend op;
  op.kv_latent = memory({3, 8});
  op.k_pe = memory({3, 4});
  op.latent_cache = memory({10, 8});
  op.rope_cache = memory({10, 4});
  return op;
}
template <>
MlaAttention valid(Memory& memory) {
  MlaAttention op;
  op.q_latent = memory({3, 4, 8});
  op.q_pe = memory({3, 4, 2});
  op.latent_cache = memory({10, 8});
  op.rope_cache = memory({10, 2});
  op.out = memory({3, 4, 8});
  return op;
}

// The same op over two sequences of a pool of four.
KvAppend pooled_append(Memory& memory) {
  auto op = valid<KvAppend>(memory);
  op.k_cache = memory({4, 10, 2, 8});
  op.v_cache = memory({4, 10, 2, 4});
  op.seq_starts = memory.indices({0, 2, 3});
  op.start = memory.indices({0, 9});
  return op;
}
Attention pooled_attention(Memory& memory) {
  auto op = valid<Attention>(memory);
  op.k_cache = memory({4, 10, 2, 8});
  op.v_cache = memory({4, 10, 2, 4});
  op.seq_starts = memory.indices({0, 2, 3});
  op.start = memory.indices({0, 9});
  return op;
}

// The same op with pages: two sequences whose rows of the table are 1 and 0.
template <class Op>
Op paged(Memory& memory) {
  auto op = valid<Op>(memory);
  op.k_cache = memory({6, 64, 2, 8});
  op.v_cache = memory({6, 64, 2, 4});
  op.seq_starts = memory.indices({0, 2, 3});
  op.slots = memory.indices({1, 0});
  op.start = memory.indices({63, 127});
  op.page_table = memory.indices({-1, 4, -1, 5, 2, 99});
  op.page_table.shape = {2, 3};
  op.page_table.strides = {3, 1};
  return op;
}
Attention paged_attention(Memory& memory) {
  auto op = paged<Attention>(memory);
  op.window = 2;
  return op;
}

template <class Op>
using Spoil = std::function<void(Op&, Memory&)>;

template <class Op>
void expect_refused(std::initializer_list<std::string_view> parts, const Spoil<Op>& spoil,
                    Op (*make)(Memory&) = &valid<Op>) {
  for (const std::string_view name : {"reference", "cpu"}) {
    SCOPED_TRACE(name);
    Memory memory;
    Op op = make(memory);
    spoil(op, memory);
    const auto backend = make_backend(name, {.threads = 1});
    expect_error(ErrorKind::input, {Op::kName}, [&] { backend->run(op); });
    expect_error(ErrorKind::input, parts, [&] { backend->run(op); });
    EXPECT_TRUE(memory.untouched());
  }
}

template <class Op>
void expect_accepted(Op (*make)(Memory&)) {
  Memory memory;
  const Op op = make(memory);
  EXPECT_NO_THROW(check(op)) << Op::kName;
}

TEST(CheckAttention, TheOpsToSpoilAreValid) {
  expect_accepted(&valid<KvAppend>);
  expect_accepted(&valid<QkNormRopeAppend>);
  expect_accepted(&valid<Attention>);
  expect_accepted(&valid<MlaAppend>);
  expect_accepted(&valid<MlaAttention>);
  expect_accepted(&pooled_append);
  expect_accepted(&pooled_attention);
  expect_accepted(&paged<KvAppend>);
  expect_accepted(&paged_attention);
}

TEST(CheckAttention, QueriesAndKeysThatAreTurnedFirst) {
  using Op = QkNormRopeAppend;
  expect_refused<Op>({"'k_weight'"}, [](auto& op, auto&) { op.k_weight = {}; });
  expect_refused<Op>({"'inv_freq'", "5", "D = 8"}, [](auto& op, auto& memory) { op.inv_freq = memory({5}); });
  expect_refused<Op>({"'eps'", "-1"}, [](auto& op, auto&) { op.eps = -1; });
  expect_refused<Op>({"'mscale'"}, [](auto& op, auto&) { op.mscale = NAN; });
  expect_refused<Op>({"'start'", "8", "10 rows"}, [](auto& op, auto&) { op.start = 8; });
  expect_refused<Op>({"'q'", "'k'"}, [](auto& op, auto&) { op.q = op.k; });
  expect_refused<Op>({"'v_cache'", "[10,2,8]"}, [](auto& op, auto& memory) {
    op.v_cache = memory({10, 2, 8});
  });
}

TEST(CheckAttention, Pages) {
  const auto refuse_both = [](std::initializer_list<std::string_view> parts, const auto& spoil) {
    expect_refused<KvAppend>(parts, spoil, &paged<KvAppend>);
    expect_refused<Attention>(parts, spoil, &paged_attention);
  };
  refuse_both({"32 rows", "power of two", "64"}, [](auto& op, auto& memory) {
    op.k_cache = memory({6, 32, 2, 8});
    op.v_cache = memory({6, 32, 2, 4});
  });
  refuse_both({"192 rows", "power of two"}, [](auto& op, auto& memory) {
    op.k_cache = memory({6, 192, 2, 8});
    op.v_cache = memory({6, 192, 2, 4});
  });
  refuse_both({"'page_table'", "[6]", "[slots,pages]"}, [](auto& op, auto&) {
    op.page_table.shape = {6};
    op.page_table.strides = {1};
  });
  refuse_both({"'slots'", "2 at 1", "0 to 1"}, [](auto& op, auto& memory) {
    op.slots = memory.indices({1, 2});
  });
  refuse_both({"'start'", "191", "192 rows"}, [](auto& op, auto& memory) {
    op.start = memory.indices({191, 127});
  });
  // Changes the second page of the first sequence, and the current page of the second.
  const auto table = [](auto& op, auto& memory, std::initializer_list<std::int32_t> entries) {
    const auto strides = op.page_table.strides;
    op.page_table = memory.indices(entries);
    op.page_table.shape = {2, 3};
    op.page_table.strides = strides;
  };
  refuse_both({"'page_table'", "-1 at page 1 of sequence 0", "0 to 5"}, [&](auto& op, auto& memory) {
    table(op, memory, {-1, 4, -1, 5, -1, 99});
  });
  refuse_both({"'page_table'", "6 at page 1 of sequence 1", "0 to 5"}, [&](auto& op, auto& memory) {
    table(op, memory, {-1, 6, -1, 5, 2, 99});
  });
  expect_refused<KvAppend>(
      {"'page_table'", "page 2 twice"},
      [&](auto& op, auto& memory) {
        table(op, memory, {-1, 2, -1, 5, 2, 99});
      },
      &paged<KvAppend>);
}

TEST(CheckAttention, PagesOfOneSequence) {
  const auto one = [](Memory& memory) {
    auto op = valid<Attention>(memory);
    op.k_cache = memory({6, 64, 2, 8});
    op.v_cache = memory({6, 64, 2, 4});
    op.page_table = memory.indices({3, 3});
    op.start = 125;
    return op;
  };
  expect_accepted<Attention>(+one);
  expect_refused<Attention>(
      {"'start'", "126", "128 rows"}, [](auto& op, auto&) { op.start = 126; }, +one);
  expect_refused<Attention>(
      {"'page_table'", "[1,2]", "[pages]"},
      [](auto& op, auto&) {
        op.page_table.shape = {1, 2};
        op.page_table.strides = {2, 1};
      },
      +one);
}

TEST(CheckAttention, MissingFields) {
  expect_refused<KvAppend>({"'v'"}, [](auto& op, auto&) { op.v = {}; });
  expect_refused<Attention>({"'q'"}, [](auto& op, auto&) { op.q = {}; });
  expect_refused<Attention>({"'out'"}, [](auto& op, auto&) { op.out = {}; });
  expect_refused<MlaAppend>({"'rope_cache'"}, [](auto& op, auto&) { op.rope_cache = {}; });
  expect_refused<MlaAttention>({"'q_pe'"}, [](auto& op, auto&) { op.q_pe = {}; });
}

TEST(CheckAttention, NullPointers) {
  expect_refused<KvAppend>({"'k_cache'", "null"}, [](auto& op, auto&) { op.k_cache.data = nullptr; });
  expect_refused<Attention>({"'v_cache'", "null"}, [](auto& op, auto&) { op.v_cache.data = nullptr; });
  expect_refused<MlaAttention>({"'out'", "null"}, [](auto& op, auto&) { op.out.data = nullptr; });
}

TEST(CheckAttention, Ranks) {
  expect_refused<KvAppend>({"'k'", "[3,16]"}, [](auto& op, auto& memory) { op.k = memory({3, 16}); });
  expect_refused<Attention>({"'k_cache'", "[10,16]"}, [](auto& op, auto& memory) {
    op.k_cache = memory({10, 16});
  });
  expect_refused<MlaAppend>({"'latent_cache'", "[10,1,8]"}, [](auto& op, auto& memory) {
    op.latent_cache = memory({10, 1, 8});
  });
  expect_refused<MlaAttention>({"'rope_cache'", "[20]"},
                               [](auto& op, auto& memory) { op.rope_cache = memory({20}); });
}

TEST(CheckAttention, Sizes) {
  expect_refused<KvAppend>({"'v'", "[4,2,4]"}, [](auto& op, auto& memory) { op.v = memory({4, 2, 4}); });
  expect_refused<KvAppend>({"'v_cache'", "[9,2,4]"}, [](auto& op, auto& memory) {
    op.v_cache = memory({9, 2, 4});
  });
  expect_refused<Attention>({"'k_cache'", "[10,2,7]"}, [](auto& op, auto& memory) {
    op.k_cache = memory({10, 2, 7});
  });
  expect_refused<Attention>({"'out'", "[3,4,8]"}, [](auto& op, auto& memory) { op.out = memory({3, 4, 8}); });
  expect_refused<MlaAppend>({"'rope_cache'", "[10,5]"}, [](auto& op, auto& memory) {
    op.rope_cache = memory({10, 5});
  });
  expect_refused<MlaAttention>({"'rope_cache'", "[9,2]"}, [](auto& op, auto& memory) {
    op.rope_cache = memory({9, 2});
  });
  expect_refused<MlaAttention>({"'q_pe'", "[3,5,2]"}, [](auto& op, auto& memory) {
    op.q_pe = memory({3, 5, 2});
  });
}

TEST(CheckAttention, Types) {
  expect_refused<KvAppend>({"'k'", "F16", "F32 or BF16"}, [](auto& op, auto& memory) {
    op.k = memory({3, 2, 8}, DType::f16);
  });
  expect_refused<Attention>({"'v_cache'", "I32", "F32 or BF16"}, [](auto& op, auto& memory) {
    op.v_cache = memory({10, 2, 4}, DType::i32);
  });
  expect_refused<Attention>({"'out'", "BF16", "F32"}, [](auto& op, auto& memory) {
    op.out = memory({3, 4, 4}, DType::bf16);
  });
  expect_refused<MlaAppend>({"'latent_cache'", "U8"}, [](auto& op, auto& memory) {
    op.latent_cache = memory({10, 8}, DType::u8);
  });
  expect_refused<MlaAttention>({"'out'", "BF16"}, [](auto& op, auto& memory) {
    op.out = memory({3, 4, 8}, DType::bf16);
  });
}

TEST(CheckAttention, Overlaps) {
  expect_refused<KvAppend>({"'k_cache'"}, [](auto& op, auto&) { op.k = op.k_cache.rows(2, 3); });
  expect_refused<Attention>({"'out'"}, [](auto& op, auto& memory) {
    op.v_cache = memory({10, 2, 8});
    op.out = memory({3, 4, 8});
    op.q = op.out;
  });
  expect_refused<MlaAppend>({"'latent_cache'"},
                            [](auto& op, auto&) { op.kv_latent = op.latent_cache.rows(0, 3); });
  expect_refused<MlaAttention>({"'out'"}, [](auto& op, auto&) { op.q_latent = op.out; });
}

TEST(CheckAttention, RowsPastTheCache) {
  expect_refused<KvAppend>({"'start'", "8", "10 rows"}, [](auto& op, auto&) { op.start = 8; });
  expect_refused<KvAppend>({"'start'", "-1"}, [](auto& op, auto&) { op.start = -1; });
  expect_refused<Attention>({"'start'", "8", "10 rows"}, [](auto& op, auto&) { op.start = 8; });
  expect_refused<Attention>({"'start'"},
                            [](auto& op, auto&) { op.start = std::numeric_limits<std::int64_t>::max(); });
  expect_refused<MlaAppend>({"'start'", "8", "10 rows"}, [](auto& op, auto&) { op.start = 8; });
  expect_refused<MlaAttention>({"'start'", "8", "10 rows"}, [](auto& op, auto&) { op.start = 8; });
  expect_refused<KvAppend>(
      {"'start'", "10", "sequence 1"},
      [](auto& op, auto& memory) {
        op.start = memory.indices({0, 10});
      },
      &pooled_append);
  expect_refused<Attention>(
      {"'start'", "9", "sequence 0"},
      [](auto& op, auto& memory) {
        op.start = memory.indices({9, 0});
      },
      &pooled_attention);
}

TEST(CheckAttention, Attributes) {
  expect_refused<Attention>({"H", "3", "KH"}, [](auto& op, auto& memory) {
    op.q = memory({3, 3, 8});
    op.out = memory({3, 3, 4});
  });
  expect_refused<Attention>({"'window'", "-1"}, [](auto& op, auto&) { op.window = -1; });
  expect_refused<Attention>({"'scale'", "nan"}, [](auto& op, auto&) { op.scale = std::nan(""); });
  expect_refused<MlaAttention>({"'scale'", "inf"},
                               [](auto& op, auto&) { op.scale = std::numeric_limits<double>::infinity(); });
}

TEST(CheckAttention, Sequences) {
  expect_refused<KvAppend>(
      {"'seq_starts'"},
      [](auto& op, auto& memory) {
        op.seq_starts = memory.indices({0, 4, 3});
      },
      &pooled_append);
  expect_refused<Attention>(
      {"'seq_starts'"},
      [](auto& op, auto& memory) {
        op.seq_starts = memory.indices({0, 1, 2});
      },
      &pooled_attention);
  expect_refused<Attention>(
      {"'slots'", "4"},
      [](auto& op, auto& memory) {
        op.slots = memory.indices({0, 4});
      },
      &pooled_attention);
  expect_refused<KvAppend>(
      {"'slots'", "twice"},
      [](auto& op, auto& memory) {
        op.slots = memory.indices({1, 1});
      },
      &pooled_append);
  expect_refused<Attention>(
      {"'start'", "I32 [B]"}, [](auto& op, auto&) { op.start = 1; }, &pooled_attention);
  expect_refused<Attention>(
      {"'start'", "[3]"},
      [](auto& op, auto& memory) {
        op.start = memory.indices({0, 1, 2});
      },
      &pooled_attention);
  expect_refused<Attention>({"'start'", "seq_starts"},
                            [](auto& op, auto& memory) { op.start = memory.indices({0}); });
}

}  // namespace
}  // namespace sluice::ops
