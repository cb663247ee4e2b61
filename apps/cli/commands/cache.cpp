// sluice cache: the prompts that a folder or a running server remembers.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "server/client.h"
#include "sluice/error.h"
#include "sluice/remembered_prompts.h"
#include "terminal/output.h"
#include "terminal/terminal.h"

namespace sluice::cli {

namespace {

using Json = nlohmann::ordered_json;

struct CacheArguments {
  std::string action = "list";
  std::string folder;
  std::string url = "http://127.0.0.1:8080";
  std::string key;
  std::string request;
  bool json = false;
};

void list_prompts(const CacheArguments& options) {
  auto rows = Json::array();
  for (const RememberedPrompt& one : list_remembered_prompts(options.folder)) {
    rows.push_back({{"file", one.file.string()},
                    {"kind", !one.damage.empty() ? "damaged"
                             : one.state         ? "state"
                                                 : "rows"},
                    {"tokens", one.tokens},
                    {"rows", one.rows},
                    {"bytes", one.bytes},
                    {"model", fmt::format("{:016x}", one.model)}});
    if (options.json) continue;
    const Json& row = rows.back();
    fmt::print("{}  {:8} {:9} tokens {:9} rows {:10.2f} MB  {}\n", row["model"].get<std::string>(),
               row["kind"].get<std::string>(), one.tokens, one.rows, static_cast<double>(one.bytes) / 1e6,
               printable(one.file.filename().string()));
  }
  if (options.json) print_json(rows);
}

void explain_report(const Json& report) {
  const auto number = [&](const char* name) { return report.value(name, std::int64_t{0}); };
  fmt::print("{}: {} of {} tokens were remembered, {} of them on the disk ({})\n",
             printable(report.value("request", "")), number("cached_tokens"), number("prompt_tokens"),
             number("from_disk"), printable(report.value("reason", "")));
  if (number("decoded_tokens") > 0)
    fmt::print(
        "  {} of them were generated or stand behind such: rounding differs from a prompt that is read\n",
        number("decoded_tokens"));
  if (report.value("other_salt", false))
    fmt::print("  a request before began like this one, but had another cache_salt\n");
  if (report.value("other_options", false))
    fmt::print("  files of another model, or of other options, begin like this one\n");
  if (!report.contains("parts_with")) return;
  fmt::print("  it parts from prompts before behind {} tokens: '{}' goes on with '{}'\n",
             number("agreeing_tokens"), printable(report.value("parts_behind", "")),
             printable(report.value("parts_with", "")));
  if (report.contains("instead_of"))
    fmt::print("  one of them went on with '{}'\n", printable(report.value("instead_of", "")));
  if (report.contains("volatile"))
    fmt::print("  there stands {}, which differs from request to request: move it behind what stays\n",
               printable(report.value("volatile", "")));
}

void say_why(const CacheArguments& options) {
  const std::string path =
      options.request.empty() ? "/v1/sluice/cache" : "/v1/sluice/cache?request=" + options.request;
  const Json answer = Json::parse(server::get_from_server(options.url, options.key, path), nullptr, false);
  if (!answer.is_object()) throw Error(ErrorKind::resource, options.url + ": the answer makes no sense");
  if (options.json) return print_json(answer);
  if (!answer.contains("requests")) return explain_report(answer);
  for (const Json& report : answer["requests"]) explain_report(report);
}

void look_after(const CacheArguments& options) {
  if (options.action == "why") return say_why(options);
  if (options.folder.empty())
    throw Error(ErrorKind::input, "name the folder that 'sluice serve --cache-disk' uses");
  if (options.action == "list") return list_prompts(options);
  const double freed = static_cast<double>(clear_remembered_prompts(options.folder));
  fmt::print(stderr, "{:.2f} MB are free again\n", freed / 1e6);
}

}  // namespace

void add_cache(Parser& parser) {
  auto options = std::make_shared<CacheArguments>();
  Command command = parser.add("cache", "List or remove remembered prompts, or say why one was not");
  command.choice("ACTION", options->action, {"list", "clear", "why"}, "What to do");
  command.option("FOLDER", options->folder, "The folder of remembered prompts, to list or clear it");
  command.option("--server", options->url, "The server to ask why");
  command.option("--server-key", options->key, "Its API key");
  command.option("--request", options->request,
                 "The request to explain, by the X-Request-Id of its answer; all that are known if absent");
  command.flag("--json", options->json, "Print JSON");
  command.example("sluice cache list ~/prompts", "what 'sluice serve --cache-disk ~/prompts:20GB' has kept");
  command.example("sluice cache why", "how much of each prompt was remembered, and where it differed");
  command.on_run([options] { look_after(*options); });
}

}  // namespace sluice::cli
