// Request bodies of every protocol: any body becomes a request or an ApiError, nothing else.
#include <cstdint>
#include <string_view>

#include "server/anthropic/messages.h"
#include "server/openai/chat.h"
#include "server/openai/completions.h"
#include "server/responses/create.h"
#include "sluice/error.h"

namespace {

using namespace sluice;
using namespace sluice::server;

const ServedModel& model() {
  static const ServedModel served = [] {
    const std::filesystem::path folder = SLUICE_SOURCE_DIR "/models/delta-story";
    return serve_model(Engine::load(folder, {.backend = "cpu", .threads = 1}), folder, "delta-story");
  }();
  return served;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static responses::Store store(1 << 20);
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const Json json = parse_body(body);
    switch (data[0] % 4) {
      case 0:
        openai::chat_completion(json, model());
        break;
      case 1:
        openai::completion(json, model());
        break;
      case 2:
        anthropic::create_message(json, model());
        break;
      default:
        responses::create(json, model(), store, "client");
    }
  } catch (const ApiError&) {
  } catch (const Error&) {
  }
  return 0;
}
