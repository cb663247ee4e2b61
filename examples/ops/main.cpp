// The ops as a library: a 4-bit matrix product, then one step of the gated delta rule, on the fastest backend
// here.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "sluice/error.h"
#include "sluice/ops/backend.h"

using namespace sluice::ops;

int main() try {
  const auto device = make_backend("auto");
  std::vector<Buffer> memory;
  const auto upload = [&]<class T>(DType type, const Shape& shape, const std::vector<T>& values) {
    Buffer& buffer = memory.emplace_back(device->allocate(values.size() * sizeof(T)));
    device->upload(buffer.data(), values.data(), values.size() * sizeof(T));
    return View(buffer.data(), type, shape);
  };

  // out = x wT with w [96,64]: every nibble is 9, scale 0.5, bias -4, so every weight is 0.5.
  const View x = upload(DType::f32, {1, 64}, std::vector<float>(64, 0.25f));
  Weight w;
  w.values = upload(DType::u32, {96, 8}, std::vector<std::uint32_t>(96 * 8, 0x99999999u));
  w.scales = upload(DType::f32, {96, 1}, std::vector<float>(96, 0.5f));
  w.biases = upload(DType::f32, {96, 1}, std::vector<float>(96, -4.0f));
  const View qkv = upload(DType::f32, {1, 96}, std::vector<float>(96));
  device->run(Matmul{.x = x, .w = w, .out = qkv});

  // q, k and v are columns of that row; one head of width 32, state zero, no decay, beta 1/2.
  const View state = upload(DType::f32, {1, 32, 32}, std::vector<float>(32 * 32));
  const View out = upload(DType::f32, {1, 1, 32}, std::vector<float>(32));
  device->run(DeltaRule{.q = qkv.columns(0, 32, {1, 32}),
                        .k = qkv.columns(32, 32, {1, 32}),
                        .v = qkv.columns(64, 32, {1, 32}),
                        .g = upload(DType::f32, {1, 1}, std::vector<float>{0.0f}),
                        .beta = upload(DType::f32, {1, 1}, std::vector<float>{0.5f}),
                        .state = state,
                        .out = out});

  std::vector<float> result(32);
  device->synchronize();
  device->download(result.data(), out.data, result.size() * sizeof(float));
  std::printf("%s: out[0] = %g (expected 8^3/2 * 32 = 8192)\n", device->description().c_str(), result[0]);
  return result[0] == 8192.0f ? 0 : 1;
} catch (const sluice::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
