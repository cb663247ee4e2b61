// sluice version: which build this is and what it can use here.
#include <build_info.h>  // made by the build
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "options/model_options.h"
#include "sluice/error.h"
#include "sluice/ops/backend.h"
#include "terminal/output.h"

namespace sluice::cli {

namespace {

// A backend's own words, or why there is none.
std::pair<bool, std::string> describe(const char* backend) {
  try {
    return {true, ops::make_backend(backend)->description()};
  } catch (const Error& error) {
    return {false, error.what()};
  }
}

void run(bool json) {
  auto backends = nlohmann::ordered_json::array();
  if (!json) fmt::print("sluice {} ({})\n", kVersion, kCommit);
  for (const char* backend : {"cpu", "cuda"}) {
    const auto [works, words] = describe(backend);
    if (!json) fmt::print("{:5} {}{}\n", backend, works ? "" : "not available: ", words);
    backends.push_back({{"name", backend}, {"available", works}, {"description", words}});
  }
  if (json) print_json({{"version", kVersion}, {"commit", kCommit}, {"backends", backends}});
}

}  // namespace

void add_version(Parser& parser) {
  auto json = std::make_shared<bool>(false);
  Command command = parser.add("version", "Print the version, the backends and the CPU's instruction set");
  command.flag("--json", *json, kJsonMeaning);
  command.on_run([json] { run(*json); });
}

}  // namespace sluice::cli
