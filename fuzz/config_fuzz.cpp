// Any text as config.json: either an Error, or a configuration whose readers all return a value or throw an
// Error.
#include "checkpoint/config.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "checkpoint/quantization_plan.h"
#include "sluice/error.h"

namespace {

using sluice::Error;
using sluice::checkpoint::Config;
using sluice::checkpoint::QuantizationPlan;

void attempt(auto&& read) {
  try {
    read();
  } catch (const Error& error) {
    if (std::string_view(error.what()).size() > 4096) std::abort();  // messages stay readable
  }
}

void read_everything(const Config& config) {
  attempt([&] { config.model_type(); });
  attempt([&] { config.get<int>("hidden_size"); });
  attempt([&] { config.get_or<double>("rms_norm_eps", 1e-6); });
  attempt([&] { config.get<bool>("tie_word_embeddings"); });
  attempt([&] { config.get<std::vector<std::string>>("layer_types"); });
  attempt([&] {
    if (const auto rope = config.section("rope_parameters")) {
      attempt([&] { rope->get<double>("rope_theta"); });
      attempt([&] { rope->get<std::vector<int>>("mrope_section"); });
    }
  });
  attempt([&] { config.refuse_unread({"hidden_act"}); });
}

void read_plan(const sluice::Json& root) {
  const QuantizationPlan plan(root, "config.json");
  attempt([&] { plan.params("lm_head", true); });
  attempt([&] { plan.params("lm_head", false); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  attempt([&] {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const Config config(sluice::parse_json(text, "config.json", {.bytes = size_t{64} << 20, .depth = 64}),
                        "config.json");
    read_everything(config);
    attempt([&] { read_plan(config.root()); });
  });
  return 0;
}
