#include "checkpoint/random/random_binder.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/integer_cast.h"
#include "checkpoint/random/random_routing.h"
#include "checkpoint/tensor_type.h"

namespace sluice::checkpoint::random {

namespace {

constexpr std::int64_t kGroup = 64;
constexpr std::uint64_t kTurnBytes = std::uint64_t{64} << 20;  // per thread, between two progress reports

std::uint64_t next(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t seed_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// Random words for one block, which is then repeated: files of many gigabytes are made at the speed of
// copying.
void fill_bits(std::uint64_t state, std::span<std::byte> to) {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  const std::size_t fresh = std::min(to.size(), kBlock);
  for (std::size_t i = 0; i < fresh; i += sizeof(std::uint64_t)) {
    const std::uint64_t word = next(state);
    std::memcpy(to.data() + i, &word, std::min(sizeof(word), fresh - i));
  }
  for (std::size_t i = fresh; i < to.size(); i += kBlock)
    std::memcpy(to.data() + i, to.data(), std::min(kBlock, to.size() - i));
}

void store_float(FileDType type, float value, std::byte* at) {
  if (type == FileDType::f32) {
    std::memcpy(at, &value, sizeof(value));
  } else {
    const ops::BFloat16 rounded = ops::to_bfloat16(value);
    std::memcpy(at, &rounded, sizeof(rounded));
  }
}

bool is_router(const std::string& module) {
  return module.ends_with(".mlp.gate") || module.ends_with(".shared_expert_gate");
}

}  // namespace

void fill_random(const RandomTensor& tensor, std::span<std::byte> to) {
  std::uint64_t state = seed_of(tensor.info.name);
  if (tensor.fill == RandomTensor::Fill::bits) return fill_bits(state, to);
  const std::size_t step = size_bytes(tensor.info.dtype);
  for (std::size_t i = 0; i + step <= to.size(); i += step) {
    if (tensor.fill == RandomTensor::Fill::formula) {
      const std::int64_t index = i / step;
      const std::int64_t columns = tensor.info.shape.back();
      store_float(tensor.info.dtype, static_cast<float>(tensor.at(index / columns, index % columns)),
                  to.data() + i);
      continue;
    }
    const double unit =
        tensor.fill == RandomTensor::Fill::constant ? 0 : to_double(next(state) >> 11) * 0x1p-53;
    store_float(tensor.info.dtype, static_cast<float>(tensor.low + (tensor.high - tensor.low) * unit),
                to.data() + i);
  }
}

ops::ConstView RandomBinder::make(RandomTensor tensor) {
  ops::Shape shape;
  for (const std::int64_t dim : tensor.info.shape) shape.push_back(dim);
  const auto bytes = size_bytes(tensor.info);
  if (!bytes) fail(ErrorKind::input, "tensor '{}' would be too large", tensor.info.name);
  const ops::DType type = *tensor_type(tensor.info.dtype);
  std::byte* data = nullptr;
  if (store_ != nullptr) {
    data = store_->allocate(to_size(*bytes));
    memory_.emplace_back(data, to_size(*bytes));
  }
  tensors_.push_back(std::move(tensor));
  return {data, type, shape};
}

void RandomBinder::fill(ThreadPool& pool, const Progress& progress) {
  std::uint64_t all = 0;
  for (const auto& tensor : memory_) all += tensor.size();
  // In rounds; between them the caller is told of the progress and may stop it.
  const std::uint64_t turn = to_size(pool.size()) * kTurnBytes;
  std::uint64_t done = 0;
  for (std::size_t begin = 0; begin < memory_.size();) {
    std::size_t end = begin;
    for (const std::uint64_t before = done; end < memory_.size() && done - before < turn; ++end)
      done += memory_[end].size();
    pool.parallel_for_dynamic(begin, end, 1, [&](std::int64_t from, std::int64_t to, int) {
      for (std::size_t i = from; i < to_size(to); ++i) fill_random(tensors_[i], memory_[i]);
    });
    begin = end;
    if (progress) progress(done, all);
  }
}

ops::Weight RandomBinder::weight(const std::string& module, const ops::Shape& shape) {
  using Fill = RandomTensor::Fill;
  const auto dims = shape.dims();
  std::vector<std::int64_t> stored(dims.begin(), dims.end());
  // Uniform values in this range have variance 1/K.
  const double width = std::sqrt(3.0 / shape.back());
  ops::Weight weight;
  if (bits_ == 16 || shape.back() % kGroup != 0) {
    weight.values = make({{module + ".weight", FileDType::bf16, stored}, Fill::uniform, -width, width});
    return weight;
  }
  weight.bits = is_router(module) ? 8 : bits_;
  if (weight.bits != bits_) eight_bit_modules_.push_back(module);
  weight.group_size = to_int(kGroup);
  stored.back() = shape.back() * weight.bits / 32;
  weight.values = make({{module + ".weight", FileDType::u32, stored}, Fill::bits, 0, 0});
  stored.back() = shape.back() / kGroup;
  const double levels = (1 << weight.bits) - 1;
  RandomTensor scales{{module + ".scales", FileDType::bf16, stored}, Fill::constant, 2 * width / levels, 0};
  RandomTensor biases{{module + ".biases", FileDType::bf16, stored}, Fill::constant, -width, 0};
  if (routing_.zipf > 0) skew_routing(module, shape, routing_.chosen, routing_.zipf, scales, biases);
  weight.scales = make(std::move(scales));
  weight.biases = make(std::move(biases));
  return weight;
}

ops::Weight RandomBinder::reordered(const std::string& module, const ops::Shape& shape,
                                    std::span<const std::int64_t> order) {
  // Permutations are listed once, in the file's own order; in memory the order of random rows does not
  // matter.
  if (store_ == nullptr) {
    const bool listed = !tensors_.empty() &&
                        std::any_of(tensors_.begin(), tensors_.end(),
                                    [&](const RandomTensor& t) { return t.info.name == module + ".weight"; });
    if (!listed) weight(module, shape);
    ops::Weight nothing;
    nothing.values = {nullptr, ops::DType::bf16, {std::ssize(order), shape[1]}};
    return nothing;
  }
  return weight(module, {std::ssize(order), shape[1]});
}

ops::ExpertWeights RandomBinder::experts(const std::string& mlp, const std::string& projection,
                                         const ops::Shape& shape) {
  return {.stack = weight(mlp + ".switch_mlp." + projection, shape), .separate = {}};
}

ops::ConstView RandomBinder::parameter(const std::string& tensor, const ops::Shape& shape, ParameterKind) {
  using Fill = RandomTensor::Fill;
  std::vector<std::int64_t> stored(shape.dims().begin(), shape.dims().end());
  RandomTensor made{{tensor, FileDType::f32, stored}, Fill::uniform, 0.8, 1.2};  // norms
  if (tensor.ends_with("conv1d.weight")) made.low = -0.5, made.high = 0.5, made.info.shape.push_back(1);
  if (tensor.ends_with("A_log")) made.low = 0, made.high = 2;
  if (tensor.ends_with("dt_bias")) made.low = -4, made.high = -1;
  if (tensor.ends_with("e_score_correction_bias")) made.low = 0, made.high = routing_.zipf > 0 ? 0 : 0.1;
  ops::ConstView view = make(std::move(made));
  return {view.data, view.dtype, shape};
}

}  // namespace sluice::checkpoint::random
