// sluice random: writes a checkpoint with random weights in the shape of a known model.
#include "sluice/random_model.h"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "options/model.h"
#include "terminal/output.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace sluice::cli::commands {

namespace {

struct RandomArguments {
  std::string geometry;
  int bits = 4;
  bool gguf = false;
  std::string out;
  std::string routing;
  bool json = false;
};

void run(const RandomArguments& options) {
  terminal::note_interrupts();
  std::uint64_t bytes = 0;
  {
    terminal::Progress progress("writing");
    const auto show = [&](std::uint64_t done, std::uint64_t total) {
      terminal::stop_if_interrupted("interrupted; nothing was written");
      progress.update(done, total);
    };
    const double zipf = options::zipf_exponent(options.routing);
    bytes = options.gguf ? write_random_gguf(options.geometry, options.bits, options.out, show, zipf)
                         : write_random_model(options.geometry, options.bits, options.out, show, zipf);
  }
  if (options.json)
    return terminal::print_json({{"out", options.out}, {"geometry", options.geometry}, {"bytes", bytes}});
  fmt::print("{}: {:.3g} GB of random weights\n", terminal::printable(options.out),
             static_cast<double>(bytes) / 1e9);
}

}  // namespace

void add_random(Parser& parser) {
  auto options = std::make_shared<RandomArguments>();
  Command command = parser.add("random", "Write a checkpoint with random weights, for tests and benchmarks");
  command.required("--geometry", options->geometry,
                   "The shape of a known model, e.g. qwen3.6-35b-a3b:layers=8,experts=64");
  command.option("--bits", options->bits, "Bits per weight: 2, 3, 4, 5, 6 or 8; 16: BF16", {2, 16});
  options::add_routing(command, options->routing);
  command.flag("--gguf", options->gguf,
               "Write one GGUF file for other programs instead: Q3_K, Q4_K or Q6_K, depending on --bits");
  command.required("OUT", options->out, "Folder or file to create");
  command.flag("--json", options->json, options::kJsonMeaning);
  command.example("sluice random --geometry qwen3.6-35b-a3b:layers=4,experts=16,vocab=512 tiny",
                  "write a small one");
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli::commands
