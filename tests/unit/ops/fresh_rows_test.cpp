// Prompts over packed caches: queries have the same bits for any division of a prompt into calls at multiples
// of the block.
#include "sluice/ops/fresh_rows.h"

#include <gtest/gtest.h>

#include "cuda_device.h"
#include "invariance.h"

namespace sluice::runner {
namespace {

struct Prompt {
  std::int64_t start;
  std::int64_t tokens;
  std::int64_t bits;
  std::int64_t window;
  ops::DType type;
};

OpFile make_grouped(std::uint64_t seed, const Prompt& p, std::int64_t heads) {
  constexpr std::int64_t kWidth = 128;
  Random random(seed);
  OpFile file;
  const std::int64_t rows = p.start + p.tokens + 5;
  file.tensors["q"] = normal(random, p.type, {p.tokens, heads, kWidth});
  file.tensors["signs"] = random_bytes(random, ops::DType::u8, {kWidth / 8});
  for (const std::string side : {"k", "v"}) {
    file.tensors[side + "_codes"] = random_bytes(random, ops::DType::u8, {2, rows, kWidth * p.bits / 8});
    file.tensors[side + "_norms"] = uniform(random, ops::DType::f32, {2, rows}, 5, 15);
    file.tensors[side + "_new"] = normal(random, p.type, {p.tokens, 2, kWidth});
    file.attributes[side + "_bits"] = std::to_string(p.bits);
  }
  file.attributes["start"] = std::to_string(p.start);
  file.attributes["window"] = std::to_string(p.window);
  file.attributes["scale"] = "0.1";
  return file;
}

OpFile make_latent(std::uint64_t seed, const Prompt& p) {
  Random random(seed);
  OpFile file;
  const std::int64_t rows = p.start + p.tokens + 5;
  file.tensors["q_latent"] = normal(random, p.type, {p.tokens, 3, 64});
  file.tensors["q_pe"] = normal(random, p.type, {p.tokens, 3, 16});
  file.tensors["latent_codes"] = random_bytes(random, ops::DType::u8, {rows, 64 * p.bits / 8});
  file.tensors["latent_norms"] = uniform(random, ops::DType::f32, {rows}, 4, 12);
  file.tensors["rope_cache"] = normal(random, ops::DType::bf16, {rows, 16});
  file.tensors["latent_new"] = normal(random, p.type, {p.tokens, 64});
  file.attributes["bits"] = std::to_string(p.bits);
  file.attributes["start"] = std::to_string(p.start);
  file.attributes["scale"] = "0.1";
  return file;
}

// Divides at random multiples of the block, counted from the start of the sequence.
void expect_same_when_cut(ops::Backend& backend, const std::string& op, const OpFile& file, Random& random) {
  const OpTable table = table_of(op);
  const HostTensor whole = run_op(backend, op, file).tensors.at("out");
  const std::int64_t tokens = whole.shape[0];
  const std::int64_t start = sequence_value(file, "start");
  for (std::int64_t begin = 0; begin < tokens;) {
    const std::int64_t blocks = 1 + random.integer(3);
    const std::int64_t border = ((start + begin) / ops::kFreshBlock + blocks) * ops::kFreshBlock;
    const std::int64_t count = std::min(border - start, tokens) - begin;
    OpFile part = file;
    keep_tokens(table, part, begin, count);
    part.attributes["start"] = std::to_string(start + begin);
    const HostTensor out = run_op(backend, op, part).tensors.at("out");
    EXPECT_TRUE(same_bits(out, slice(whole, 0, begin, count))) << "tokens from " << begin;
    begin += count;
  }
}

void check_prompts(ops::Backend& backend) {
  Random random(20260);
  for (const ops::DType type : {ops::DType::f32, ops::DType::bf16})
    for (const std::int64_t bits : {3, 4, 8})
      for (const std::int64_t start : {0, 64, 37, 600})
        for (const std::int64_t window : {0, 100}) {
          const Prompt prompt{start, 390, bits, window, type};
          for (const std::int64_t heads : {2, 16}) {
            SCOPED_TRACE(
                fmt::format("{} {} bits from {} window {} heads {}", name(type), bits, start, window, heads));
            expect_same_when_cut(backend, "turboquant_attention", make_grouped(random.bits(), prompt, heads),
                                 random);
          }
          if (window == 0)
            expect_same_when_cut(backend, "mla_turboquant_attention", make_latent(random.bits(), prompt),
                                 random);
        }
}

TEST(FreshRows, GiveTheSameBitsHoweverAPromptIsCut) {
  for (const bool exact : {true, false})
    check_prompts(*ops::make_backend("cpu", {.threads = 2, .exact = exact}));
}

TEST(FreshRows, GiveTheSameBitsHoweverAPromptIsCutOnTheGpu) {
  SLUICE_NEED_CUDA();
  const auto backend = ops::make_backend("cuda", {.phase = ops::Phase::prefill});
  check_prompts(*backend);
}

// The fresh rows are those of a query's own block in its own call.
TEST(FreshRows, AreThoseOfTheOwnBlock) {
  EXPECT_EQ(ops::first_fresh_row(0, 0), 0);
  EXPECT_EQ(ops::first_fresh_row(63, 0), 0);
  EXPECT_EQ(ops::first_fresh_row(64, 0), 64);
  EXPECT_EQ(ops::first_fresh_row(130, 0), 128);
  EXPECT_EQ(ops::first_fresh_row(130, 129), 129);
  EXPECT_EQ(ops::first_fresh_row(200, 129), 192);
}

}  // namespace
}  // namespace sluice::runner
