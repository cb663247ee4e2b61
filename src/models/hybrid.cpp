#include "models/hybrid.h"

#include <nlohmann/json.hpp>

#include "base/integer_cast.h"
#include "models/bind.h"
#include "models/sizes.h"

namespace sluice::models {

namespace {

// Checks the limits of the op delta_rule when the model is loaded, naming the field of the file.
std::int64_t delta_width(const Config& config, std::string_view key) {
  const std::int64_t width = size(config, key);
  if (width % 32 != 0 || width > 256)
    fail(ErrorKind::unsupported, "{}: '{}' is {}, supported are multiples of 32 up to 256", config.where(),
         key, width);
  return width;
}

}  // namespace

layers::GatedDeltaNet bind_delta_net(const Config& config, Binder& binder, const std::string& module) {
  layers::GatedDeltaNet net;
  net.key_heads = size(config, "linear_num_key_heads");
  net.value_heads = size(config, "linear_num_value_heads");
  net.key_dim = delta_width(config, "linear_key_head_dim");
  net.value_dim = delta_width(config, "linear_value_head_dim");
  net.conv_width = size_or(config, "linear_conv_kernel_dim", 4);
  if (net.value_heads % net.key_heads != 0)
    fail(ErrorKind::checkpoint, "{}: {} linear value heads cannot share {} key heads evenly", config.where(),
         net.value_heads, net.key_heads);
  const std::int64_t values = net.value_heads * net.value_dim;
  net.conv1d =
      binder.parameter(module + ".conv1d.weight", {net.channels(), net.conv_width}, ParameterKind::plain);
  net.A_log = binder.parameter(module + ".A_log", {net.value_heads}, ParameterKind::plain);
  net.dt_bias = binder.parameter(module + ".dt_bias", {net.value_heads}, ParameterKind::plain);
  net.norm = bind_norm(binder, module + ".norm", net.value_dim, config.get_or<double>("rms_norm_eps", 1e-6),
                       ParameterKind::plain);
  net.out_proj = binder.weight(module + ".out_proj", {size(config, "hidden_size"), values});
  return net;
}

std::vector<bool> linear_layers(const Config& config) {
  const auto count = to_size(size(config, "num_hidden_layers"));
  const std::int64_t interval = size_or(config, "full_attention_interval", 4);
  std::vector<bool> linear(count);
  for (std::size_t i = 0; i < count; ++i) linear[i] = (static_cast<std::int64_t>(i) + 1) % interval != 0;
  const auto types = config.optional<std::vector<std::string>>("layer_types");
  if (!types) return linear;
  if (types->size() != count)
    fail(ErrorKind::checkpoint, "{}: 'layer_types' names {} layers, 'num_hidden_layers' is {}",
         config.where(), types->size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& type = (*types)[i];
    if (type != "linear_attention" && type != "full_attention")
      fail(ErrorKind::unsupported,
           "{}: layer {} is of type '{}'; known are linear_attention and full_attention", config.where(), i,
           type);
    linear[i] = type == "linear_attention";
  }
  return linear;
}

Json hybrid_sizes(int hidden, int layers, int heads, int kv_heads, int value_heads) {
  return {{"hidden_size", hidden},
          {"num_hidden_layers", layers},
          {"num_attention_heads", heads},
          {"num_key_value_heads", kv_heads},
          {"head_dim", 256},
          {"linear_num_key_heads", 16},
          {"linear_num_value_heads", value_heads},
          {"linear_key_head_dim", 128},
          {"linear_value_head_dim", 128},
          {"linear_conv_kernel_dim", 4},
          {"tie_word_embeddings", false},
          {"max_position_embeddings", 262144},
          {"rms_norm_eps", 1e-6},
          {"full_attention_interval", 4},
          {"hidden_act", "silu"}};
}

}  // namespace sluice::models
