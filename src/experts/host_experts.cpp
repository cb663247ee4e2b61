#include "experts/host_experts.h"

#include <numeric>
#include <vector>

#include "base/clock.h"
#include "base/integer_cast.h"
#include "experts/float_rows.h"

namespace sluice::experts {

HostExperts::HostExperts(ops::Backend& cpu, ops::DType activations) : cpu_(cpu), activations_(activations) {}

ops::View HostExperts::floats(ops::Buffer& buffer, const ops::Shape& shape) {
  const auto bytes = to_size(shape.elements()) * sizeof(float);
  if (buffer.bytes() < bytes) buffer = cpu_.allocate(bytes);
  return {buffer.data(), ops::DType::f32, shape};
}

void HostExperts::compute(const std::byte* input, std::span<const Expert> experts, std::byte* out) {
  const auto start = Clock::now();
  const auto count = std::ssize(experts);
  const std::int64_t hidden = experts[0].gate_proj.shape()[1];
  const ops::View x = floats(input_, {1, hidden});
  const ops::View inner = floats(inner_, {1, count, experts[0].gate_proj.shape()[0]});
  const ops::View results = floats(results_, {1, count, hidden});
  const ops::View numbers(floats(numbers_, {1, count}).data, ops::DType::i32, {1, count});
  std::iota(static_cast<std::int32_t*>(numbers.data), static_cast<std::int32_t*>(numbers.data) + count, 0);
  std::vector<ops::Weight> gate;
  std::vector<ops::Weight> up;
  std::vector<ops::Weight> down;
  for (std::vector<ops::Weight>* list : {&gate, &up, &down}) list->reserve(experts.size());
  std::size_t bytes = 0;
  for (const Expert& expert : experts) {
    gate.push_back(expert.gate_proj);
    up.push_back(expert.up_proj);
    down.push_back(expert.down_proj);
    for_each_tensor(expert, [&](const ops::ConstView& tensor) { bytes += bytes_of(tensor).size(); });
  }
  to_floats(input, activations_, {static_cast<float*>(x.data), to_size(x.elements())});
  cpu_.run(ops::ExpertGateUpSwiglu{.x = x,
                                   .gate_w = {.stack = {}, .separate = gate},
                                   .up_w = {.stack = {}, .separate = up},
                                   .experts = numbers,
                                   .out = inner});
  cpu_.run(ops::ExpertMatmul{
      .x = inner, .w = {.stack = {}, .separate = down}, .experts = numbers, .out = results});
  from_floats({static_cast<const float*>(results.data), to_size(results.elements())}, activations_, out);
  constexpr double kWeight = 0.05;  // weight of the latest measurement
  const double took = seconds_since(start);
  seconds_per_byte_ += kWeight * (took / to_double(bytes) - seconds_per_byte_);
}

}  // namespace sluice::experts
