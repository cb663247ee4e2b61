#include "sluice/ops/cache/turboquant_encode.h"

#include "base/error.h"
#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

struct Settings {
  std::int64_t bits = 4;
  bool signs = true;
  bool matched = false;
  ops::DType type = ops::DType::f32;
  double scale = 1;
};

OpFile make(std::uint64_t seed, const ops::Shape& shape, const Settings& settings) {
  Random random(seed);
  OpFile file;
  file.tensors["x"] = normal(random, settings.type, shape, settings.scale);
  if (settings.signs) file.tensors["signs"] = random_bytes(random, ops::DType::u8, {shape.back() / 8});
  file.attributes["bits"] = std::to_string(settings.bits);
  file.attributes["norm"] = settings.matched ? "matched" : "plain";
  return file;
}

// Coordinates that are exactly 0 after the rotation lie on a boundary: a zero vector, a constant one, one
// with a single nonzero element, and a Walsh function.
OpFile make_borders(std::uint64_t seed, std::int64_t width, const Settings& settings) {
  OpFile file = make(seed, {4, 1, width}, settings);
  HostTensor& x = file.tensors["x"];
  for (std::int64_t i = 0; i < width; ++i) {
    set(x, i, 0);
    set(x, width + i, 0.1);
    set(x, 2 * width + i, i == 5 ? -3 : 0);
    set(x, 3 * width + i, (i & 4) != 0 ? -7 : 7);
  }
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::TurboquantEncode>() {
  std::vector<Case> table;
  const auto add = [&](std::string label, const ops::Shape& shape, const Settings& settings) {
    table.push_back({std::move(label), [=](std::uint64_t seed) { return make(seed, shape, settings); }});
  };
  for (const std::int64_t bits : {2, 3, 4, 5, 6, 8}) {
    for (const std::int64_t width : {32, 64, 128, 256, 512, 1024})
      add(fmt::format("{} bits of {}", bits, width), {7, 3, width}, {bits, true, width > 128});
    add(fmt::format("{} bits bf16", bits), {65, 2, 128}, {bits, true, true, ops::DType::bf16});
    add(fmt::format("{} bits no signs", bits), {2, 1, 256}, {bits, false});
    for (const bool signs : {false, true})
      table.push_back(
          {fmt::format("{} bits on borders{}", bits, signs ? "" : " no signs"), [=](std::uint64_t seed) {
             return make_borders(seed, 64, {bits, signs, signs});
           }});
  }
  for (const std::int64_t bits : {4, 8})
    for (const std::int64_t width : {128, 256, 512}) {
      add(fmt::format("{} bits of {} bf16", bits, width), {301, 3, width},
          {bits, true, width == 256, ops::DType::bf16});
      table.push_back({fmt::format("{} bits of {} bf16 on borders", bits, width), [=](std::uint64_t seed) {
                         return make_borders(seed, width, {bits, true, true, ops::DType::bf16});
                       }});
    }
  for (const std::int64_t tokens : {1, 2, 63, 64, 257})
    add(fmt::format("{} tokens", tokens), {tokens, 2, 128}, {4, true, true});
  for (const bool matched : {false, true})
    for (const double scale : {1e30, 1e-30, 1e-42})
      add(fmt::format("size {} {}", scale, matched ? "matched" : "plain"), {3, 2, 64},
          {4, true, matched, ops::DType::f32, scale});
  for (const double scale : {1e30, 1e-30, 1e-38})
    add(fmt::format("size {} bf16", scale), {3, 2, 256}, {4, true, true, ops::DType::bf16, scale});
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::TurboquantEncode>() {
  std::vector<BenchCase> table;
  for (const std::int64_t bits : {4, 8}) {
    const double vectors = 8192 * 2;
    table.push_back({fmt::format("8192 x 2 x 256 bf16, {} bits matched", bits),
                     [=](std::uint64_t seed) {
                       return make(seed, {8192, 2, 256}, {bits, true, true, ops::DType::bf16});
                     },
                     vectors * (512 + 32 * to_double(bits) + 4), vectors * 256 * 10});
  }
  return table;
}

}  // namespace sluice::runner
