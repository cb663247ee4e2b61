// Adjacent ops that share a launch when a program is recorded give the bits of separate ops.
#include <cstring>
#include <random>

#include "cuda_device.h"
#include "sluice/ops/backend.h"

namespace sluice {
namespace {

using ops::DType;

// Device memory with random contents that can be restored.
class Tensors {
 public:
  Tensors(ops::Backend& backend, unsigned seed) : backend_(backend), random_(seed) {}

  ops::View bf16(const ops::Shape& shape, float scale) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(shape.elements()));
    std::normal_distribution<float> normal(0, scale);
    for (std::uint16_t& value : values) {
      const float x = normal(random_);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &x, sizeof bits);
      value = static_cast<std::uint16_t>(bits >> 16);
    }
    return put(DType::bf16, shape, values.data(), values.size() * 2);
  }
  ops::View i32(const ops::Shape& shape, std::int32_t value) {
    const std::vector<std::int32_t> values(static_cast<std::size_t>(shape.elements()), value);
    return put(DType::i32, shape, values.data(), values.size() * 4);
  }
  ops::View empty(DType type, const ops::Shape& shape) {
    const std::vector<std::byte> poison(static_cast<std::size_t>(shape.elements()) * size_bytes(type),
                                        std::byte{0xff});
    return put(type, shape, poison.data(), poison.size());
  }
  // [.., N, K] in groups of 64.
  ops::Weight weight(const ops::Shape& shape, int bits) {
    const auto with_last = [&](std::int64_t last) {
      return shape.rank() == 3 ? ops::Shape{shape[0], shape[1], last} : ops::Shape{shape[0], last};
    };
    const ops::Shape words = with_last(shape.back() * bits / 32);
    const ops::Shape groups = with_last(shape.back() / 64);
    std::vector<std::uint32_t> codes(static_cast<std::size_t>(words.elements()));
    for (std::uint32_t& code : codes) code = static_cast<std::uint32_t>(random_());
    ops::Weight w;
    w.values = put(DType::u32, words, codes.data(), codes.size() * 4);
    w.scales = bf16(groups, bits == 4 ? 0.01f : 0.0006f);
    w.biases = bf16(groups, 0.03f);
    w.bits = bits;
    return w;
  }
  // Restores the initial contents.
  void restore() {
    for (const auto& [buffer, contents] : all_)
      backend_.upload(buffer.data(), contents.data(), contents.size());
  }
  std::vector<std::vector<std::byte>> contents() {
    std::vector<std::vector<std::byte>> all;
    for (const auto& [buffer, contents] : all_) {
      all.emplace_back(contents.size());
      backend_.download(all.back().data(), buffer.data(), contents.size());
    }
    return all;
  }

 private:
  ops::View put(DType type, const ops::Shape& shape, const void* from, std::size_t bytes) {
    const auto* first = static_cast<const std::byte*>(from);
    all_.emplace_back(backend_.allocate(bytes), std::vector<std::byte>(first, first + bytes));
    backend_.upload(all_.back().first.data(), from, bytes);
    return {all_.back().first.data(), type, shape};
  }

  ops::Backend& backend_;
  std::mt19937 random_;
  std::vector<std::pair<ops::Buffer, std::vector<std::byte>>> all_;
};

struct Sizes {
  std::int64_t hidden, mixed, experts, chosen, inner;
  float scale;  // of the residual: some squares exceed the range of F32
};

// The ops of a layer around its mixer, for one token, with a shared expert after the others.
class Layer {
 public:
  Layer(ops::Backend& backend, const Sizes& s, unsigned seed)
      : tensors(backend, seed),
        x_(tensors.bf16({1, s.hidden}, s.scale)),
        h_(tensors.empty(DType::bf16, {1, s.hidden})),
        y_(tensors.empty(DType::bf16, {1, s.hidden})),
        mixed_(tensors.empty(DType::bf16, {1, s.mixed})),
        logits_(tensors.empty(DType::f32, {1, s.experts + 1})),
        choices_(tensors.i32({1, s.chosen + 1}, static_cast<std::int32_t>(s.experts))),
        weights_(tensors.empty(DType::f32, {1, s.chosen})),
        inner_(tensors.empty(DType::bf16, {1, s.chosen + 1, s.inner})),
        out_(tensors.empty(DType::bf16, {1, (s.chosen + 1) * s.hidden})),
        norm_(tensors.bf16({s.hidden}, 1)),
        in_(tensors.weight({s.mixed, s.hidden}, 4)),
        projection_(tensors.weight({s.hidden, s.mixed}, 4)),
        gates_(tensors.weight({s.experts + 1, s.hidden}, 8)),
        gate_(tensors.weight({s.experts + 1, s.inner, s.hidden}, 4)),
        up_(tensors.weight({s.experts + 1, s.inner, s.hidden}, 4)),
        down_(tensors.weight({s.experts + 1, s.hidden, s.inner}, 4)),
        sizes_(s) {}

  void run(ops::Backend& backend) const {
    const auto& s = sizes_;
    constexpr auto kPhase = ops::Phase::decode;
    backend.run(ops::RmsNorm{.x = x_, .weight = norm_, .out = h_, .eps = 1e-6}, kPhase);
    backend.run(ops::Matmul{.x = h_, .w = in_, .out = mixed_}, kPhase);
    backend.run(ops::Matmul{.x = mixed_, .w = projection_, .out = y_}, kPhase);
    backend.run(ops::AddRmsNorm{.residual = x_, .delta = y_, .weight = norm_, .out = h_, .eps = 1e-6},
                kPhase);
    backend.run(ops::Matmul{.x = h_, .w = gates_, .out = logits_}, kPhase);
    backend.run(ops::RouteSoftmax{.logits = logits_.columns(0, s.experts, {s.experts}),
                                  .experts = choices_.columns(0, s.chosen, {s.chosen}),
                                  .weights = weights_,
                                  .k = s.chosen,
                                  .normalize = true},
                kPhase);
    backend.run(ops::ExpertGateUpSwiglu{.x = h_,
                                        .gate_w = {.stack = gate_, .separate = {}},
                                        .up_w = {.stack = up_, .separate = {}},
                                        .experts = choices_,
                                        .out = inner_},
                kPhase);
    backend.run(ops::ExpertMatmul{.x = inner_,
                                  .w = {.stack = down_, .separate = {}},
                                  .experts = choices_,
                                  .out = out_.reshaped({1, s.chosen + 1, s.hidden})},
                kPhase);
    backend.run(ops::MoeCombine{.residual = x_,
                                .expert_out = out_.columns(0, s.chosen * s.hidden, {s.chosen, s.hidden}),
                                .weights = weights_,
                                .shared_out = out_.columns(s.chosen * s.hidden, s.hidden, {s.hidden}),
                                .shared_gate = logits_.columns(s.experts, 1, {1}),
                                .out = x_},
                kPhase);
  }

  Tensors tensors;

 private:
  ops::View x_, h_, y_, mixed_, logits_, choices_, weights_, inner_, out_, norm_;
  ops::Weight in_, projection_, gates_, gate_, up_, down_;
  Sizes sizes_;
};

TEST(CudaFused, RecordedOpsGiveTheBitsOfOpsOneByOne) {
  SLUICE_NEED_CUDA();
  const auto backend = ops::make_backend("cuda");
  const Sizes cases[] = {{2048, 4096, 256, 8, 512, 1},     {1024, 768, 40, 4, 256, 1},
                         {3072, 2048, 64, 6, 512, 1},      {2048, 2304, 16, 2, 768, 1e-18f},
                         {4096, 1024, 128, 8, 256, 1e20f}, {512, 1024, 32, 4, 1024, 1}};
  unsigned seed = 1;
  for (const Sizes& sizes : cases) {
    SCOPED_TRACE("hidden " + std::to_string(sizes.hidden) + ", seed " + std::to_string(seed));
    Layer layer(*backend, sizes, seed++);
    const auto program = backend->record([&] {
      for (int i = 0; i < 2; ++i) layer.run(*backend);
    });
    layer.tensors.restore();
    for (int i = 0; i < 2; ++i) {
      layer.run(*backend);
      backend->synchronize();
    }
    const auto want = layer.tensors.contents();
    for (int replay = 0; replay < 3; ++replay) {
      layer.tensors.restore();
      program->run();
      EXPECT_TRUE(layer.tensors.contents() == want) << "replay " << replay;
    }
  }
}

}  // namespace
}  // namespace sluice
