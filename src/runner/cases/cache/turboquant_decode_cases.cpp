#include "sluice/ops/cache/turboquant_decode.h"

#include "base/error.h"
#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

struct Settings {
  std::int64_t bits = 4;
  bool signs = true;
  bool rotated = false;
  double norm = 16;
};

OpFile make(std::uint64_t seed, std::int64_t heads, std::int64_t tokens, std::int64_t width,
            const Settings& settings) {
  Random random(seed);
  OpFile file;
  file.tensors["codes"] = random_bytes(random, ops::DType::u8, {heads, tokens, width * settings.bits / 8});
  file.tensors["norms"] =
      uniform(random, ops::DType::f32, {heads, tokens}, 0.5 * settings.norm, 1.5 * settings.norm);
  if (settings.signs) file.tensors["signs"] = random_bytes(random, ops::DType::u8, {width / 8});
  file.attributes["bits"] = std::to_string(settings.bits);
  file.attributes["rotated"] = settings.rotated ? "1" : "0";
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::TurboquantDecode>() {
  std::vector<Case> table;
  const auto add = [&](std::string label, std::int64_t heads, std::int64_t tokens, std::int64_t width,
                       const Settings& settings) {
    table.push_back(
        {std::move(label), [=](std::uint64_t seed) { return make(seed, heads, tokens, width, settings); }});
  };
  for (const std::int64_t bits : {2, 3, 4, 5, 6, 8}) {
    for (const std::int64_t width : {32, 64, 128, 256, 512, 1024})
      add(fmt::format("{} bits of {}", bits, width), 3, 5, width, {bits});
    add(fmt::format("{} bits rotated", bits), 2, 65, 64, {bits, true, true});
    add(fmt::format("{} bits no signs", bits), 1, 1, 32, {bits, false});
  }
  for (const std::int64_t tokens : {1, 2, 63, 64, 257})
    add(fmt::format("{} tokens", tokens), 2, tokens, 128, {});
  add("zero norms", 2, 3, 128, {4, true, false, 0});
  add("huge", 2, 3, 128, {4, true, false, 1e36});
  add("tiny", 2, 3, 128, {4, true, false, 1e-30});
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::TurboquantDecode>() {
  std::vector<BenchCase> table;
  for (const std::int64_t bits : {4, 8}) {
    const double vectors = 4096 * 2;
    table.push_back({fmt::format("4096 x 2 x 256, {} bits", bits),
                     [=](std::uint64_t seed) { return make(seed, 2, 4096, 256, {bits}); },
                     vectors * (1024 + 32 * to_double(bits) + 4), vectors * 256 * 10});
  }
  return table;
}

}  // namespace sluice::runner
