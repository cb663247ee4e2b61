#include "checkpoint/checkpoint_binder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/integer_cast.h"
#include "checkpoint/packed_experts.h"
#include "checkpoint/tensor_type.h"
#include "tensor/element.h"

namespace sluice::checkpoint {

namespace {

constexpr std::string_view kModelPrefix = "model.";

ops::DType weight_type(const TensorEntry& tensor) {
  if (tensor.dtype == FileDType::f8_e4m3)
    fail(ErrorKind::unsupported, "tensor '{}' is FP8, which 'sluice convert' turns into a format that runs",
         tensor.name);
  const auto known = tensor_type(tensor.dtype);
  if (known && *known != ops::DType::i32) return *known;
  fail(ErrorKind::checkpoint, "tensor '{}' has type {}, weights are F32, BF16, F16 or packed U32",
       tensor.name, name(tensor.dtype));
}

ops::ConstView view_of(const TensorEntry& tensor) {
  if (tensor.shape.empty() || tensor.shape.size() > to_size(ops::kMaxRank))
    fail(ErrorKind::checkpoint, "tensor '{}' has {} dimensions, expected 1 to {}", tensor.name,
         tensor.shape.size(), ops::kMaxRank);
  ops::Shape shape;
  for (const std::int64_t dim : tensor.shape) shape.push_back(dim);
  return {tensor.data.data(), weight_type(tensor), shape};
}

void check_shape(const TensorEntry& tensor, const ops::Shape& given, const ops::Shape& expected) {
  if (!(given == expected))
    fail(ErrorKind::checkpoint, "tensor '{}' has shape {}, config.json implies {}", tensor.name,
         to_string(given), to_string(expected));
}

// Raw checkpoints store convolutions as [C,1,W], MLX as [C,W,1]; raw checkpoints also store norms minus one.
// Without any convolution the names decide: only MLX stacks experts under switch_mlp or writes scales.
bool stores_raw_norms(const TensorFiles& files) {
  bool mlx_names = false;
  for (const TensorEntry* tensor : files.tensors()) {
    if (tensor->name.ends_with("conv1d.weight") && tensor->shape.size() == 3) return tensor->shape[2] != 1;
    mlx_names = mlx_names || tensor->name.ends_with(".scales") ||
                tensor->name.find(".switch_mlp.") != std::string::npos ||
                tensor->name.starts_with("language_model.model.");
  }
  return !mlx_names;
}

}  // namespace

CheckpointBinder::CheckpointBinder(WeightStore& store, const QuantizationPlan& plan)
    : store_(store), plan_(plan), prefix_(kModelPrefix), zero_centered_raw_(stores_raw_norms(store.files())) {
  for (const std::string_view prefix : {"model.", "model.language_model.", "language_model.model."})
    if (store.files().find(std::string(prefix) + "embed_tokens.weight") != nullptr) prefix_ = prefix;
}

std::string CheckpointBinder::stored_name(const std::string& name) const {
  if (name.starts_with(kModelPrefix)) return prefix_ + name.substr(kModelPrefix.size());
  return prefix_ == "language_model.model." ? "language_model." + name : name;
}

const TensorEntry* CheckpointBinder::find(const std::string& stored) {
  const TensorEntry* tensor = store_.files().find(stored);
  if (tensor != nullptr) used_.insert(stored);
  return tensor;
}

const TensorEntry& CheckpointBinder::get(const std::string& stored) {
  const TensorEntry* tensor = find(stored);
  if (tensor == nullptr)
    fail(ErrorKind::checkpoint, "{}: tensor '{}' is missing", store_.files().folder().string(), stored);
  return *tensor;
}

bool CheckpointBinder::has(const std::string& module) const {
  return store_.files().find(stored_name(module) + ".weight") != nullptr;
}

ops::Weight CheckpointBinder::bind(const std::string& module, const TensorEntry& values,
                                   const ops::Shape& shape) {
  const TensorEntry* scales = find(module + ".scales");
  const auto params = plan_.params(module, scales != nullptr);
  ops::Weight weight;
  weight.values = view_of(values);
  if (params) {
    const TensorEntry& present = get(module + ".scales");
    const TensorEntry* biases = find(module + ".biases");
    check_quantized(module, *params, values, present, biases);
    weight.scales = view_of(present);
    if (biases != nullptr) weight.biases = view_of(*biases);
    weight.mode = params->mode;
    weight.bits = params->bits;
    weight.group_size = params->group_size;
  } else if (weight.values.dtype == ops::DType::u32 || weight.values.dtype == ops::DType::u8) {
    fail(ErrorKind::checkpoint, "tensor '{}' is packed but has no scales", values.name);
  }
  check_shape(values, weight.shape(), shape);
  return weight;
}

ops::Weight CheckpointBinder::weight(const std::string& module, const ops::Shape& shape) {
  const std::string stored = stored_name(module);
  return bind(stored, get(stored + ".weight"), shape);
}

ops::Weight CheckpointBinder::reordered(const std::string& module, const ops::Shape& shape,
                                        std::span<const std::int64_t> order) {
  ops::Weight weight = this->weight(module, shape);
  for (ops::ConstView* part : {&weight.values, &weight.scales, &weight.biases}) {
    if (!part->present()) continue;
    const std::size_t row = to_size(part->dim(1)) * size_bytes(part->dtype);
    std::byte* to = store_.allocate(row * order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      std::memcpy(to + i * row, static_cast<const std::byte*>(part->data) + to_size(order[i]) * row, row);
    *part = {to, part->dtype, {std::ssize(order), part->dim(1)}};
  }
  return weight;
}

// The gate and up projections of all experts in one tensor [E,2N,K] without ".weight", gate first.
ops::ExpertWeights CheckpointBinder::fused_experts(const TensorEntry& fused, const std::string& projection,
                                                   const ops::Shape& shape) {
  const bool down = projection == "down_proj";
  const ops::ConstView all = view_of(fused);
  check_shape(fused, all.shape, {shape[0], down ? shape[1] : 2 * shape[1], shape[2]});
  const std::int64_t first = projection == "up_proj" ? shape[1] : 0;
  std::vector<ops::Weight> experts(to_size(shape[0]));
  for (std::int64_t e = 0; e < shape[0]; ++e) experts[e].values = all[e].rows(first, shape[1]);
  return {.stack = {}, .separate = store_.keep(std::move(experts))};
}

ops::ExpertWeights CheckpointBinder::packed_experts(const TensorEntry& records, const std::string& projection,
                                                    const ops::Shape& shape) {
  const SafetensorsFile& file = store_.files().file_of(records);
  const std::string where = file.path().string();
  const auto metadata = file.metadata().find(std::string(kPackedFormat));
  if (metadata == file.metadata().end())
    fail(ErrorKind::checkpoint, "{}: the metadata lacks '{}'", where, kPackedFormat);
  const bool down = projection == kProjections[2];
  const RecordLayout layout(metadata->second, shape[down ? 2 : 1], shape[down ? 1 : 2], where);
  const std::int64_t bytes = layout.bytes();
  if (records.dtype != FileDType::u8 || records.shape != std::vector<std::int64_t>{shape[0], bytes})
    fail(ErrorKind::checkpoint, "tensor '{}' has shape [{}], expected U8 [{}, {}]", records.name,
         fmt::join(records.shape, ", "), shape[0], bytes);
  const std::size_t index =
      std::find(kProjections.begin(), kProjections.end(), projection) - kProjections.begin();
  std::vector<ops::Weight> experts;
  for (std::int64_t e = 0; e < shape[0]; ++e)
    experts.push_back(layout.in(records.data.data() + e * bytes)[index]);
  return {.stack = {}, .separate = store_.keep(std::move(experts))};
}

ops::ExpertWeights CheckpointBinder::experts(const std::string& mlp, const std::string& projection,
                                             const ops::Shape& shape) {
  const std::string stored = stored_name(mlp);
  if (const TensorEntry* records = find(stored + std::string(kPackedRecords))) {
    const TensorEntry& prints = get(stored + std::string(kPackedFingerprints));
    if (prints.dtype != FileDType::u64 || prints.shape != std::vector<std::int64_t>{shape[0]})
      fail(ErrorKind::checkpoint, "tensor '{}' has shape [{}], expected U64 [{}]", prints.name,
           fmt::join(prints.shape, ", "), shape[0]);
    return packed_experts(*records, projection, shape);
  }
  const std::string stacked = stored + ".switch_mlp." + projection;
  if (const TensorEntry* values = find(stacked + ".weight"))
    return {.stack = bind(stacked, *values, shape), .separate = {}};
  const std::string fused = stored + ".experts." + (projection == "down_proj" ? "down_proj" : "gate_up_proj");
  if (const TensorEntry* values = find(fused)) return fused_experts(*values, projection, shape);
  std::vector<ops::Weight> experts;
  for (std::int64_t e = 0; e < shape[0]; ++e) {
    const std::string one = fmt::format("{}.experts.{}.{}", stored, e, projection);
    experts.push_back(bind(one, get(one + ".weight"), {shape[1], shape[2]}));
  }
  return {.stack = {}, .separate = store_.keep(std::move(experts))};
}

ops::ConstView CheckpointBinder::parameter(const std::string& tensor, const ops::Shape& shape,
                                           ParameterKind kind) {
  const TensorEntry& stored = get(stored_name(tensor));
  const ops::ConstView given = view_of(stored);
  if (given.dtype == ops::DType::u32 || given.dtype == ops::DType::u8)
    fail(ErrorKind::checkpoint, "tensor '{}' has type {}, it must be F32, BF16 or F16", stored.name,
         name(given.dtype));
  // Convolutions have a dimension of one in either position.
  ops::Shape squeezed;
  for (int d = 0; d < given.rank(); ++d)
    if (given.shape[d] != 1 || given.rank() <= shape.rank()) squeezed.push_back(given.shape[d]);
  if (given.elements() != shape.elements() || (squeezed.rank() == shape.rank() && !(squeezed == shape)))
    check_shape(stored, given.shape, shape);
  const std::size_t count = shape.elements();
  auto* values = reinterpret_cast<float*>(store_.allocate(count * sizeof(float)));
  const float shift = kind == ParameterKind::zero_centered && zero_centered_raw_ ? 1.0f : 0.0f;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = ops::load(given.data, given.dtype, static_cast<std::int64_t>(i));
    values[i] = static_cast<float>(value) + shift;
    if (values[i] != values[i]) fail(ErrorKind::checkpoint, "tensor '{}' holds NaN at {}", stored.name, i);
  }
  return {values, ops::DType::f32, shape};
}

void CheckpointBinder::refuse_unbound(std::span<const std::string> spare) const {
  constexpr std::string_view kElsewhere[] = {"mtp.",          "model.mtp.", "language_model.mtp.",
                                             "model.visual.", "visual.",    "vision_tower.",
                                             "vision_model."};
  std::vector<std::string_view> unknown;
  for (const TensorEntry* tensor : store_.files().tensors()) {
    const std::string& name = tensor->name;
    const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (used_.contains(name) || name.ends_with("rotary_emb.inv_freq")) continue;
    if (std::any_of(std::begin(kElsewhere), std::end(kElsewhere), begins)) continue;
    if (std::any_of(spare.begin(), spare.end(), [&](const std::string& s) { return begins(stored_name(s)); }))
      continue;
    unknown.push_back(name);
  }
  if (unknown.empty()) return;
  const std::size_t shown = std::min<std::size_t>(unknown.size(), 3);
  fail(ErrorKind::checkpoint, "{}: {} tensors have no place in this model: {}{}",
       store_.files().folder().string(), unknown.size(), fmt::join(std::span(unknown).first(shown), ", "),
       unknown.size() > shown ? ", ..." : "");
}

}  // namespace sluice::checkpoint
