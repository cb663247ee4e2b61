// States saved during a call have the bits of a call that ends there, and saving changes nothing else.
#include <gtest/gtest.h>

#include <cmath>

#include "cuda_device.h"
#include "expect_error.h"
#include "invariance.h"

namespace sluice::runner {
namespace {

// Three sequences, one of them empty, in a pool of four.
constexpr std::int32_t kStarts[] = {0, 200, 200, 350};
constexpr std::int32_t kSaves[] = {64, 192, -1, 264, 328};

void cut(OpFile& file) {
  file.tensors["seq_starts"] = indices({kStarts[0], kStarts[1], kStarts[2], kStarts[3]});
  file.tensors["slots"] = indices({2, 3, 0});
}

OpFile make_rule(std::uint64_t seed, ops::DType type, const std::string& form) {
  Random random(seed);
  OpFile file;
  file.tensors["q"] = normal(random, type, {350, 2, 64}, 0.1);
  file.tensors["k"] = normal(random, type, {350, 2, 64}, 0.1);
  file.tensors["v"] = normal(random, type, {350, 4, 32});
  file.tensors["g"] = uniform(random, ops::DType::f32, {350, 4}, -0.3, -0.001);
  file.tensors["beta"] = uniform(random, ops::DType::f32, {350, 4}, 0, 1);
  file.tensors["state"] = normal(random, ops::DType::f32, {4, 4, 32, 64});
  file.attributes["form"] = form;
  cut(file);
  return file;
}

OpFile make_conv(std::uint64_t seed, ops::DType type, std::int64_t channels, std::int64_t taps) {
  Random random(seed);
  OpFile file;
  file.tensors["x"] = normal(random, type, {350, channels});
  file.tensors["weight"] = normal(random, ops::DType::f32, {channels, taps}, 0.5);
  file.tensors["state"] = normal(random, ops::DType::f32, {4, taps - 1, channels});
  cut(file);
  return file;
}

OpFile with_saves(OpFile file) {
  HostTensor at(ops::DType::i32, {static_cast<std::int64_t>(std::size(kSaves))});
  std::copy(std::begin(kSaves), std::end(kSaves), at.data<std::int32_t>());
  ops::Shape shape = file.tensors.at("state").shape;
  shape[0] = at.shape[0];
  file.tensors["save_at"] = std::move(at);
  file.tensors["saved"] = constant(ops::DType::f32, shape, 77);
  return file;
}

void check_saves(ops::Backend& backend, const std::string& op, const OpFile& file) {
  const OpTable table = table_of(op);
  const OpFile plain = run_op(backend, op, file);
  const OpFile saving = run_op(backend, op, with_saves(file));
  for (const auto& [name, tensor] : plain.tensors)
    EXPECT_TRUE(same_bits(tensor, saving.tensors.at(name))) << name;
  const HostTensor& saved = saving.tensors.at("saved");
  for (std::int64_t i = 0; i < saved.shape[0]; ++i) {
    SCOPED_TRACE(fmt::format("save {}", i));
    if (kSaves[i] < 0) {
      for (std::int64_t e = 0; e < saved.shape.elements() / saved.shape[0]; ++e)
        ASSERT_EQ(saved.at(i * (saved.shape.elements() / saved.shape[0]) + e), 77);
      continue;
    }
    const std::int64_t b = kSaves[i] > kStarts[1] ? 2 : 0;
    OpFile alone = one_sequence(table, file, b);
    keep_tokens(table, alone, 0, kSaves[i] - kStarts[b]);
    const auto slot = static_cast<std::int64_t>(alone.tensors.at("slots").at(0));
    const HostTensor state = run_op(backend, op, alone).tensors.at("state");
    EXPECT_TRUE(same_bits(slice(saved, 0, i, 1), slice(state, 0, slot, 1)));
  }
}

void check_backend(ops::Backend& backend) {
  for (const ops::DType type : {ops::DType::f32, ops::DType::bf16}) {
    for (const char* form : {"auto", "recurrent", "chunked"}) {
      SCOPED_TRACE(fmt::format("{} {}", name(type), form));
      check_saves(backend, "delta_rule", make_rule(1, type, form));
    }
    for (const std::int64_t taps : {1, 3, 4, 70}) {
      SCOPED_TRACE(fmt::format("{} {} taps", name(type), taps));
      check_saves(backend, "causal_conv1d", make_conv(2, type, taps == 4 ? 600 : 33, taps));
    }
  }
}

TEST(SaveAt, GivesTheStatesOfShorterCalls) {
  check_backend(*ops::make_backend("reference"));
  check_backend(*ops::make_backend("cpu", {.threads = 2}));
}

TEST(SaveAt, GivesTheStatesOfShorterCallsOnTheGpu) {
  SLUICE_NEED_CUDA();
  const auto backend = ops::make_backend("cuda", {.phase = ops::Phase::prefill});
  check_backend(*backend);
}

TEST(SaveAt, IsChecked) {
  const auto backend = ops::make_backend("cpu", {.threads = 1});
  const auto refuse = [&](std::initializer_list<std::int32_t> at,
                          std::initializer_list<std::string_view> parts) {
    OpFile file = with_saves(make_rule(3, ops::DType::f32, "auto"));
    file.tensors["save_at"] = indices(at);
    expect_error(ErrorKind::input, parts, [&] { run_op(*backend, "delta_rule", file); });
  };
  refuse({64, 100, -1, -1, -1}, {"'save_at'", "100 at 1"});
  refuse({64, 64, -1, -1, -1}, {"'save_at'", "64 at 1"});
  refuse({0, -1, -1, -1, -1}, {"'save_at'", "0 at 0"});
  refuse({384, -1, -1, -1, -1}, {"'save_at'", "384 at 0"});
  refuse({256, -1, -1, -1, -1}, {"'save_at'", "256 at 0"});  // 56 tokens of the third sequence
  OpFile file = make_rule(3, ops::DType::f32, "auto");
  file.tensors["save_at"] = indices({64});
  expect_error(ErrorKind::input, {"'save_at'", "'saved'"}, [&] { run_op(*backend, "delta_rule", file); });
}

}  // namespace
}  // namespace sluice::runner
