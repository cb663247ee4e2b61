// A hostile template over a benign chat: it renders or throws sluice::Error, within its limits.
#include <nlohmann/json.hpp>
#include <string_view>

#include "sluice/error.h"
#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const auto kVariables = nlohmann::ordered_json::parse(R"({
    "messages": [{"role": "system", "content": "be é"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    "tools": [{"name": "f", "parameters": {"x": 1.5, "y": null}}], "add_generation_prompt": true, "x": "a,b", "n": -3})");
  sluice::text::ChatOptions options;
  options.now.emplace();
  options.limits = {1 << 16, 1 << 22, 20'000, 300};
  try {
    sluice::text::ChatTemplate source(std::string_view(reinterpret_cast<const char*>(data), size));
    source.render(kVariables, options);
  } catch (const sluice::Error&) {
  }
  return 0;
}
