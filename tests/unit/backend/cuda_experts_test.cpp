// Products with experts of 4-bit weights: a special kernel shares an expert's weights among several tokens,
// another one serves a single token. A token's bits are the same alone and among others.
#include <algorithm>
#include <cstring>
#include <random>

#include "cuda_device.h"

namespace sluice {
namespace {

using ops::DType;

constexpr std::int64_t kExperts = 41;  // every token chooses the last one

// Random contents on the device.
class Tensors {
 public:
  Tensors(ops::Backend& backend, unsigned seed) : backend_(backend), random_(seed) {}

  ops::View words(DType type, const ops::Shape& shape) {
    std::vector<std::uint32_t> all(static_cast<std::size_t>(shape.elements()) * size_bytes(type) / 4);
    for (std::uint32_t& word : all) word = static_cast<std::uint32_t>(random_());
    return put(type, shape, all.data(), all.size() * 4);
  }
  ops::View bf16(const ops::Shape& shape, float scale) {
    std::vector<std::uint16_t> all(static_cast<std::size_t>(shape.elements()));
    std::normal_distribution<float> normal(0, scale);
    for (std::uint16_t& value : all) {
      const float x = normal(random_);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &x, sizeof bits);
      value = static_cast<std::uint16_t>(bits >> 16);
    }
    return put(DType::bf16, shape, all.data(), all.size() * 2);
  }
  ops::View poison(const ops::Shape& shape) {
    const std::vector<std::uint16_t> all(static_cast<std::size_t>(shape.elements()), 0xffff);
    return put(DType::bf16, shape, all.data(), all.size() * 2);
  }
  ops::Weight weight(std::int64_t rows, std::int64_t columns) {
    ops::Weight w;
    w.values = words(DType::u32, {kExperts, rows, columns / 8});
    w.scales = bf16({kExperts, rows, columns / 64}, 0.01f);
    w.biases = bf16({kExperts, rows, columns / 64}, 0.03f);
    w.bits = 4;
    return w;
  }
  // The experts of every token: distinct ones and the last, or the same for all tokens.
  ops::View choices(std::int64_t tokens, std::int64_t chosen, bool crowded) {
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> order(kExperts - 1);
    for (std::size_t e = 0; e < order.size(); ++e) order[e] = static_cast<std::int32_t>(e);
    for (std::int64_t t = 0; t < tokens; ++t) {
      if (!crowded || t == 0) std::shuffle(order.begin(), order.end(), random_);
      ids.insert(ids.end(), order.begin(), order.begin() + chosen);
      ids.push_back(static_cast<std::int32_t>(kExperts - 1));
    }
    return put(DType::i32, {tokens, chosen + 1}, ids.data(), ids.size() * 4);
  }
  std::vector<std::uint16_t> contents(const ops::View& view) {
    std::vector<std::uint16_t> all(static_cast<std::size_t>(view.shape.elements()));
    backend_.download(all.data(), view.data, all.size() * 2);
    backend_.synchronize();
    return all;
  }

 private:
  ops::View put(DType type, const ops::Shape& shape, const void* from, std::size_t bytes) {
    buffers_.push_back(backend_.allocate(bytes));
    backend_.upload(buffers_.back().data(), from, bytes);
    return {buffers_.back().data(), type, shape};
  }

  ops::Backend& backend_;
  std::mt19937 random_;
  std::vector<ops::Buffer> buffers_;
};

// Token t of [T,..].
ops::View token_of(const ops::View& view, std::int64_t t) {
  ops::View one = view;
  one.data =
      static_cast<std::byte*>(view.data) + t * view.strides[0] * static_cast<long>(size_bytes(view.dtype));
  one.shape = view.rank() == 3 ? ops::Shape{1, view.dim(1), view.dim(2)} : ops::Shape{1, view.dim(1)};
  return one;
}

struct Case {
  std::int64_t tokens, chosen, inputs, outputs;
  bool gated, crowded;
};

TEST(CudaExperts, GiveATokenTheSameBitsAloneAndAmongOthers) {
  SLUICE_NEED_CUDA();
  const auto backend = ops::make_backend("cuda");
  unsigned seed = 1;
  for (const Case& c : {Case{2, 8, 2048, 512, true, false}, Case{33, 8, 2048, 512, true, false},
                        Case{64, 3, 2048, 48, true, true}, Case{9, 1, 2048, 16, true, false},
                        Case{2, 8, 512, 2048, false, false}, Case{33, 8, 512, 2048, false, false},
                        Case{70, 2, 512, 48, false, true}, Case{5, 8, 1024, 64, false, false},
                        Case{40, 4, 1024, 272, false, true}}) {
    SCOPED_TRACE(std::to_string(c.tokens) + " tokens, K " + std::to_string(c.inputs) + ", N " +
                 std::to_string(c.outputs) + ", seed " + std::to_string(seed));
    Tensors tensors(*backend, seed++);
    const ops::ExpertWeights first{.stack = tensors.weight(c.outputs, c.inputs), .separate = {}};
    const ops::ExpertWeights second{.stack = tensors.weight(c.outputs, c.inputs), .separate = {}};
    const ops::View ids = tensors.choices(c.tokens, c.chosen, c.crowded);
    const ops::View x =
        c.gated ? tensors.bf16({c.tokens, c.inputs}, 1) : tensors.bf16({c.tokens, c.chosen + 1, c.inputs}, 1);
    const auto run = [&](const ops::View& inputs, const ops::View& experts, const ops::View& out) {
      if (c.gated)
        backend->run(
            ops::ExpertGateUpSwiglu{
                .x = inputs, .gate_w = first, .up_w = second, .experts = experts, .out = out},
            ops::Phase::decode);
      else
        backend->run(ops::ExpertMatmul{.x = inputs, .w = first, .experts = experts, .out = out},
                     ops::Phase::decode);
    };
    const ops::View alone = tensors.poison({c.tokens, c.chosen + 1, c.outputs});
    for (std::int64_t t = 0; t < c.tokens; ++t) run(token_of(x, t), token_of(ids, t), token_of(alone, t));
    const ops::View together = tensors.poison({c.tokens, c.chosen + 1, c.outputs});
    run(x, ids, together);
    const auto want = tensors.contents(alone);
    EXPECT_EQ(std::count(want.begin(), want.end(), 0xffff), 0);
    EXPECT_TRUE(tensors.contents(together) == want);
  }
}

}  // namespace
}  // namespace sluice
