// sluice op: runs one op on files, or prints the catalogue.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "options/model.h"
#include "sluice/op_runner.h"
#include "terminal/output.h"

namespace sluice::cli::commands {

namespace {

struct OpArguments {
  std::string name;
  std::string in;
  std::string out;
  std::string backend = "auto";
  int threads = 0;
  bool list = false;
  bool markdown = false;
  bool json = false;
  std::string describe;
};

nlohmann::ordered_json to_json(const OpDescription& op) {
  nlohmann::ordered_json json{{"name", op.name}, {"family", op.family}, {"formula", op.formula}};
  json["sequences"] = op.several_sequences;
  json["fields"] = nlohmann::ordered_json::array();
  for (const auto& field : op.fields)
    json["fields"].push_back(
        {{"name", field.name}, {"role", field.role}, {"types", field.types}, {"shape", field.shape}});
  json["attributes"] = nlohmann::ordered_json::array();
  for (const auto& attribute : op.attributes) {
    nlohmann::ordered_json entry{{"name", attribute.name}, {"type", attribute.type}};
    entry["default"] = attribute.default_value.empty() ? nlohmann::ordered_json(nullptr)
                                                       : nlohmann::ordered_json(attribute.default_value);
    entry["meaning"] = attribute.meaning;
    json["attributes"].push_back(std::move(entry));
  }
  return json;
}

void print_list(bool json) {
  if (json) {
    auto all = nlohmann::ordered_json::array();
    for (const OpDescription& op : describe_ops()) all.push_back(to_json(op));
    return terminal::print_json(all);
  }
  std::string family;
  for (const OpDescription& op : describe_ops()) {
    if (op.family != family) fmt::print("{}{}\n", family.empty() ? "" : "\n", family = op.family);
    fmt::print("  {:24} {}\n", op.name, op.formula);
  }
}

void print_description(const std::string& name, bool json) {
  const OpDescription op = describe_op(name);
  if (json) {
    return terminal::print_json(to_json(op));
  }
  fmt::print("{}\n  {}\n\nfields\n", op.name, op.formula);
  for (const auto& field : op.fields)
    fmt::print("  {:14} {:9} {:20} {}\n", field.name, field.role, field.types, field.shape);
  if (op.attributes.empty()) return;
  fmt::print("\nattributes\n");
  for (const auto& attribute : op.attributes)
    fmt::print("  {:17} {}; {}: {}\n", attribute.name, attribute.type,
               attribute.default_value.empty() ? "required" : "default " + attribute.default_value,
               attribute.meaning);
}

void run(const OpArguments& options) {
  if (options.markdown) {
    fmt::print("{}", ops_markdown());
  } else if (options.list) {
    print_list(options.json);
  } else if (!options.describe.empty()) {
    print_description(options.describe, options.json);
  } else {
    if (options.name.empty() || options.in.empty() || options.out.empty())
      fail_usage("NAME with --in and --out, or --list, or --describe");
    run_op_file(options.name, options.in, options.out, options.backend, options.threads);
  }
}

}  // namespace

void add_op(Parser& parser) {
  auto options = std::make_shared<OpArguments>();
  Command command = parser.add("op", "Run one op on safetensors files, or print the catalogue");
  command.option("NAME", options->name, "The op to run");
  command.option("--in", options->in,
                 "File with the op's fields as tensors and its attributes as metadata 'attr.NAME'");
  command.option("--out", options->out, "File to write outputs and updated fields to");
  options::add_backend(command, options->backend);
  options::add_threads(command, options->threads);
  command.flag("--list", options->list, "Print the catalogue");
  command.option("--describe", options->describe, "Print the contract of one op");
  command.flag("--markdown", options->markdown, "Print the catalogue as Markdown (docs/ops.md)");
  command.flag("--json", options->json, options::kJsonMeaning);
  command.example("sluice op --describe rms_norm", "show what an op takes and returns");
  command.example("sluice op rms_norm --in x.safetensors --out y.safetensors --backend reference",
                  "run it on files");
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli::commands
