// sluice cache: the cached prompts of a folder or a running server.
#include <fmt/core.h>

#include <memory>

#include "commands/commands.h"
#include "json.h"
#include "server/client.h"
#include "sluice/error.h"
#include "sluice/remembered_prompts.h"
#include "terminal/output.h"
#include "terminal/terminal.h"

namespace sluice::cli::commands {

namespace {

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
               terminal::printable(one.file.filename().string()));
  }
  if (options.json) terminal::print_json(rows);
}

void explain_report(const Json& report) {
  const auto number = [&](const char* name) { return report.value(name, std::int64_t{0}); };
  fmt::print("{}: {} of {} tokens were cached, {} of them on disk ({})\n",
             terminal::printable(report.value("request", "")), number("cached_tokens"),
             number("prompt_tokens"), number("from_disk"), terminal::printable(report.value("reason", "")));
  if (number("decoded_tokens") > 0)
    fmt::print(
        "  {} of them were generated or follow generated ones: they are rounded differently from a prompt\n",
        number("decoded_tokens"));
  if (report.value("other_salt", false))
    fmt::print("  an earlier request began like this one but had another cache_salt\n");
  if (report.value("other_options", false))
    fmt::print("  cached files of another model or of other options begin like this one\n");
  if (!report.contains("parts_with")) return;
  fmt::print("  it differs from earlier prompts after {} tokens: '{}' is followed by '{}'\n",
             number("agreeing_tokens"), terminal::printable(report.value("parts_behind", "")),
             terminal::printable(report.value("parts_with", "")));
  if (report.contains("instead_of"))
    fmt::print("  one of them continued with '{}'\n", terminal::printable(report.value("instead_of", "")));
  if (report.contains("volatile"))
    fmt::print("  this is {}, which changes from request to request: move it after what stays the same\n",
               terminal::printable(report.value("volatile", "")));
}

void say_why(const CacheArguments& options) {
  const std::string path =
      options.request.empty() ? "/v1/sluice/cache" : "/v1/sluice/cache?request=" + options.request;
  const Json answer = Json::parse(server::get_from_server(options.url, options.key, path), nullptr, false);
  if (!answer.is_object())
    throw Error(ErrorKind::resource, options.url + ": the server's answer is not a report of its cache");
  if (options.json) return terminal::print_json(answer);
  if (!answer.contains("requests")) return explain_report(answer);
  for (const Json& report : answer["requests"]) explain_report(report);
}

void look_after(const CacheArguments& options) {
  if (options.action == "why") return say_why(options);
  if (options.folder.empty())
    throw Error(ErrorKind::input, "FOLDER is missing: name the folder that 'sluice serve --cache-disk' uses");
  if (options.action == "list") return list_prompts(options);
  const double freed = static_cast<double>(clear_remembered_prompts(options.folder));
  fmt::print(stderr, "{:.2f} MB freed\n", freed / 1e6);
}

}  // namespace

void add_cache(Parser& parser) {
  auto options = std::make_shared<CacheArguments>();
  Command command = parser.add("cache", "List or delete cached prompts, or explain why one was not reused");
  command.choice("ACTION", options->action, {"list", "clear", "why"}, "What to do");
  command.option("FOLDER", options->folder, "The folder of cached prompts to list or clear");
  command.option("--server", options->url, "The server that 'why' asks");
  command.option("--server-key", options->key, "API key for that server");
  command.option("--request", options->request,
                 "The request to explain, by the X-Request-Id of its answer; if absent: all known ones");
  command.flag("--json", options->json, "Print JSON");
  command.example("sluice cache list ~/prompts",
                  "show what 'sluice serve --cache-disk ~/prompts:20GB' has kept");
  command.example("sluice cache why", "show how much of each prompt was cached, and where it differed");
  command.on_run([options] { look_after(*options); });
}

}  // namespace sluice::cli::commands
